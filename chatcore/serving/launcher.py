"""Run a program that dies together with the supervisor: `launcher PARENT_PID PROGRAM ARGUMENTS…`.

The supervisor stops its children when it ends, but it cannot do so when it is killed. This small
program asks the kernel to kill it when its parent dies, and then becomes the given program; the
request survives that. Only Linux can do this. Elsewhere the children of a killed supervisor go on.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # from <linux/prctl.h>


def main() -> None:
    """Ask for the signal, then replace this process by the program."""
    parent_pid, *command = sys.argv[1:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # The parent may have died before the request. No signal comes then, so nothing must start.
    if os.getppid() != int(parent_pid):
        sys.exit(1)
    os.execv(command[0], command)  # noqa: S606


if __name__ == "__main__":
    main()
