"""The child process of `running_web`; people use `barkspider web`."""

from barkspider.lab.synthweb.process import child_main

if __name__ == "__main__":
    child_main()
