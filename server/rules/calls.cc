#include "server/rules/calls.h"

#include <algorithm>

namespace longwire::rules {
namespace {

constexpr DeniableCall kCalls[] = {
    {"cuCtxSetLimit", "cuCtxSetLimit"},
    {"cuFuncSetAttribute", "lwFunctionSetAttribute"},
    {"cuGraphLaunch", "lwGraphLaunch"},
    {"cuGreenCtxCreate", "lwGreenContextCreate"},
    {"cuIpcGetMemHandle", "lwShare"},
    {"cuIpcOpenMemHandle", "lwBorrow"},
    {kLaunchKernel, "lwLaunch"},
    {"cuLinkCreate", "lwLinkCreate"},
    {"cuMemcpyDtoD", "lwCopyDevice"},
    {"cuMemcpyDtoH", "lwBridgeSend"},
    {"cuMemcpyDtoH", "lwCopyPinned"},
    {"cuMemcpyDtoH", "lwCopyToHost"},
    {"cuMemcpyHtoD", "lwBridgeReceive"},
    {"cuMemcpyHtoD", "lwCopyKept"},
    {"cuMemcpyHtoD", "lwCopyPinned"},
    {"cuMemcpyHtoD", "lwCopyToDevice"},
    {"cuMemset", "cuGraphAddMemsetNode"},
    {"cuMemset", "cuGraphExecMemsetNodeSetParams"},
    {"cuMemset", "cuGraphMemsetNodeSetParams"},
    {"cuMemset", "lwMemset"},
    {"cuModuleLoad", "lwModuleLoad"},
    {"cuStreamSetAttribute", "cuStreamSetAttribute"},
};

}  // namespace

std::span<const DeniableCall> DeniableCalls() { return kCalls; }

bool IsDeniable(std::string_view name) {
  return std::ranges::any_of(kCalls, [&](const DeniableCall& call) { return call.name == name; });
}

}  // namespace longwire::rules
