"""`python -m chatcore X` is `chatcore X`, for whoever knows the interpreter and not the script."""

from chatcore.cli.main import main

if __name__ == "__main__":
    main()
