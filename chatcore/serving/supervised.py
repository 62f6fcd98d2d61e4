"""Become another program that dies with its parent: `python -m chatcore.serving.supervised PARENT_PID PROGRAM ARGUMENTS…`."""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Ask the kernel for the promise, then exec; without such a kernel, just exec."""
    parent_pid, *command = sys.argv[1:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(parent_pid):  # it died before the kernel knew
        sys.exit(1)
    os.execv(command[0], command)  # noqa: S606


if __name__ == "__main__":
    main()
