"""The most memory that this process has held, in MB. Imports nothing: the scripts of the peers use it too."""


def megabytes() -> float:
    """Linux' own count if there is one: what `getrusage` says begins with the memory of the process that forked."""
    try:
        with open("/proc/self/status") as lines:
            kilobytes = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
    except FileNotFoundError:
        import resource
        import sys

        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        kilobytes = most // 1024 if sys.platform == "darwin" else most
    return kilobytes / 1024
