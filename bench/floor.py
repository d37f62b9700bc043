"""What calls over TCP stand on, on this host: raw sockets, and the gRPC stream of link and daemon
alone; and how far from that Longwire's figures are."""

PROGRAMS = [["raw_tcp"], ["stream_ping"], ["stream_ping", "eagerly"]]

# A figure of ours, and the one of the floor that it is a multiple of.
MULTIPLES = [
    ("memory_info", "tcp_ping_pong_spinning"),
    ("memory_info", "stream_ping"),
    ("launch_synchronize", "stream_ping"),
    ("h2d_pageable_256MiB", "tcp_one_connection"),
    ("d2h_pageable_256MiB", "tcp_one_connection"),
]


def multiples(floor, ours):
    """Lines; both are {figure: value}."""
    return [f"{name} is {ours[name] / floor[of]:.2f} x {of}"
            for name, of in MULTIPLES if name in ours and floor.get(of)]
