"""Module images and inputs of links, as a client that keeps no rule sends them."""
import hashlib

from hostile_client import blob, i32, list32, list64, u64

PIECE = 1000 << 10  # bytes of one record

PTX = b"""
.version 7.0
.target sm_52
.address_size 64
.visible .entry nothing()
{
    ret;
}
"""


def load(number, image, options=0, on_offer=False, digest=True):
    """Arguments of the load of an image under this number, also as its transfer."""
    return (u64(number) + b"\1" + u64(number) + u64(len(image))
            + list32([0] * options) + list64([]) + i32(-1)
            + blob(hashlib.sha256(image).digest() if digest else b"")
            + bytes([on_offer, False]))


def send_image(client, number, image):
    for at in range(0, len(image), PIECE):
        client.send("lwCopyData", u64(number) + u64(at) + blob(image[at:at + PIECE]))


def load_module(client, number, image=PTX):
    """The load's code."""
    send_image(client, number, image)
    code, _ = client.ask("lwModuleLoad", load(number, image))
    return code


def create_link(client, number):
    code, _ = client.ask("lwLinkCreate", u64(number) + list32([]) + list64([]))
    return code


def add_to_link(client, link, number, image):
    """The code; what the driver says of the image does not matter here."""
    send_image(client, number, image)
    code, _ = client.ask("lwLinkAdd", u64(link) + i32(1) + u64(number) + u64(len(image))
                         + blob("input") + list32([]) + list64([]) + blob(b"") + b"\0",
                         seconds=60)
    return code
