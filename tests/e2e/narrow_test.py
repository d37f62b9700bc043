#!/usr/bin/env python3
"""The forms with 32-bit addresses, on a device whose memory lies below 4 GiB."""
import sys

import programs
import server

LOW = {"LONGWIRE_SOFTGPU_ARENA_BASE": "0x20000000", "LONGWIRE_SOFTGPU_ARENA_BYTES": "0xc0000000"}
# The client's window, inside the software device's addresses.
WINDOW = {"LONGWIRE_WINDOW_BASES": "40000000", "LONGWIRE_WINDOW_BYTES": "0x40000000"}


def main():
    with server.Server(software_memory=256 << 20, variables=LOW) as longwire:
        result = longwire.run("driver_narrow.driver", "low", **WINDOW)
        wrong = programs.what_is_wrong("driver_narrow", result)
        if wrong:
            print(wrong)
            print(longwire.log_tail())
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
