"""`python -m tropel.cli` is `tropel`."""

from tropel.cli.commands import main

if __name__ == "__main__":
    main()
