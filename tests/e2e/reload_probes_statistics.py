"""The probe of the key that has kernels counted."""
import json

from reload_cases import probe


def kernels(case):
    told = case.longwire.cli("top", "--kernels", "--once", "--json")
    case.assertEqual(0, told.code, told)
    seen = json.loads(told.out)
    return seen["counted"], sum(kernel["launches"] for kernel in seen["kernels"])


@probe("kernel_statistics")
def count(case):
    case.longwire.reload(kernel_statistics="sampled")
    result = case.longwire.run_as("alpha", case.longwire.program("advised.static"), "few")
    case.assertEqual(0, result.code, result)
    case.assertEqual((True, 80), kernels(case))
    case.longwire.reload()
    case.longwire.run_as("alpha", case.longwire.program("advised.static"), "few")
    case.assertEqual((False, 80), kernels(case))
