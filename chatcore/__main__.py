"""Make `python -m chatcore X` the same as `chatcore X`."""

from chatcore.cli.main import main

if __name__ == "__main__":
    main()
