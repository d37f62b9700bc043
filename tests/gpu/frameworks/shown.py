"""What the programs of this folder print: hashes of bytes, which must be the same natively and
through Longwire on the same GPU."""
import hashlib

import numpy


def digest(array):
    """The hash of an array's bytes, of NumPy or anything NumPy takes."""
    return hashlib.sha256(numpy.ascontiguousarray(array).tobytes()).hexdigest()[:32]


def show(name, array):
    array = numpy.asarray(array)
    print(f"{name} {array.shape} {array.dtype} {digest(array)}", flush=True)


def show_tensor(name, tensor):
    """A PyTorch tensor, of any element type and on any device."""
    import torch
    flat = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
    print(f"{name} {tuple(tensor.shape)} {tensor.dtype} {digest(flat)}", flush=True)


def show_steps(count):
    """How many steps the program did, for the round trips per step in the table."""
    print(f"steps {count}", flush=True)
