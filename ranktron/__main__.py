"""`python -m ranktron` is the command line."""

from ranktron.cli import main

if __name__ == "__main__":
    main()
