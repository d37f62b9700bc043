#include "softgpu/engine/lower/program.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "softgpu/engine/ptx/lexer.h"
#include "softgpu/engine/ptx/ptx_check.h"
#include "softgpu/engine/run/builtins.h"
#include "softgpu/engine/texture/texture.h"

namespace softgpu {
namespace {

constexpr int kInvalidImage = 200;
constexpr int kInvalidPtx = 218;
constexpr int kUnsupportedPtxVersion = 222;
constexpr int kMaxVersion = 99;  // times ten: of the language's newest major version
constexpr uint64_t kMaxModuleBytes = uint64_t{16} << 30;

uint64_t AlignUp(uint64_t value, uint64_t alignment) {
  return alignment <= 1 ? value : (value + alignment - 1) / alignment * alignment;
}

uint64_t ElementBits(const Initializer& value, Type type) {
  if (value.is_float32 && type == Type::kF64) {
    return std::bit_cast<uint64_t>(
        static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(value.bits))));
  }
  if (value.is_float64 && type == Type::kF32) {
    return std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(value.bits)));
  }
  return value.bits;
}

// Calls visit(name) for every symbol that an operand names.
template <class F>
void VisitSymbols(const std::vector<PtxOperand>& operands, const F& visit) {
  for (const PtxOperand& operand : operands) {
    if (operand.kind == PtxOperand::Kind::kSymbol ||
        (operand.kind == PtxOperand::Kind::kAddress && !operand.has_register)) {
      visit(operand.symbol);
    }
    VisitSymbols(operand.elements, visit);
  }
}

}  // namespace

ProgramImpl::~ProgramImpl() {
  for (uint64_t address : blocks_) memory_.Free(address);
}

const CodeFunction* ProgramImpl::FindFunction(uint64_t handle) const {
  uint64_t index = (handle - kFunctionHandleBase) / 16;
  if (index >= functions_.size() || functions_[index]->handle != handle) return nullptr;
  return functions_[index]->has_body ? functions_[index].get() : nullptr;
}

const Kernel* ProgramImpl::FindKernel(uint64_t handle) const {
  const CodeFunction* function = FindFunction(handle);
  for (auto& kernel : kernels_) {
    if (kernel->function == function) return kernel.get();
  }
  return nullptr;
}

void ProgramImpl::DeclareFunctions(const PtxModule& module) {
  for (const PtxFunction& source : module.functions) {
    auto [it, added] =
        symbols_.try_emplace(source.name, Symbol{Symbol::Kind::kFunction, functions_.size(), 0});
    if (!added) {
      if (it->second.kind != Symbol::Kind::kFunction) {
        throw PtxError(source.line, "name used twice: " + std::string(source.name));
      }
      if (!source.has_body) continue;
      if (functions_[it->second.value]->has_body) {
        throw PtxError(source.line, "function defined twice: " + std::string(source.name));
      }
    } else {
      functions_.push_back(std::make_unique<CodeFunction>());
    }
    CodeFunction& function = *functions_[it->second.value];
    function.name = source.name;
    function.entry = source.entry;
    function.has_body = source.has_body;
    function.handle = kFunctionHandleBase + 16 * it->second.value;
    function.parameters.clear();
    function.returns.clear();
    if (source.unified) unified_infos_.push_back({function.name, function.handle, 0});
    Lowering::LayOutSignature(source, function);
  }
}

void ProgramImpl::DeclareReferences(const PtxModule& module) {
  for (const Variable& v : module.variables) {
    if (v.reference == Reference::kNone) continue;
    const uint64_t index = reference_infos_.size();
    if (index == kMaxReferences) throw PtxError(v.line, "too many textures and surfaces");
    Symbol symbol{Symbol::Kind::kReference, kReferenceBase + index, 0};
    if (v.external || !symbols_.try_emplace(v.name, symbol).second) {
      throw PtxError(v.line, "name used twice or not defined: " + std::string(v.name));
    }
    reference_infos_.push_back({std::string(v.name), v.reference == Reference::kSurface});
  }
}

// One block of device memory for globals, one for constants, one of managed memory.
bool ProgramImpl::PlaceVariables(const PtxModule& module) {
  return PlaceVariables(module, Space::kGlobal, false) &&
         PlaceVariables(module, Space::kConst, false) &&
         PlaceVariables(module, Space::kGlobal, true);
}

bool ProgramImpl::PlaceVariables(const PtxModule& module, Space space, bool managed) {
  uint64_t total = 0;
  std::vector<std::pair<const Variable*, uint64_t>> placed;
  for (const Variable& v : module.variables) {
    if (v.space != space || v.managed != managed || v.reference != Reference::kNone) continue;
    if (symbols_.count(v.name) != 0) {
      throw PtxError(v.line, "name used twice: " + std::string(v.name));
    }
    if (v.external && !is_part_) {
      throw PtxError(v.line, "undefined reference to '" + std::string(v.name) + "'");
    }
    total = AlignUp(total, std::max<uint64_t>(v.alignment, 16));
    placed.emplace_back(&v, total);
    symbols_[v.name] = Symbol{Symbol::Kind::kMemory, total, v.bytes};
    total += v.bytes;
    if (total > kMaxModuleBytes) throw PtxError(v.line, "variables too large");
  }
  if (placed.empty()) return true;
  uint64_t base = 0;
  if (managed) {
    auto block = memory_.AllocateManaged(total);
    base = block.address;
    managed_filled_ = block.filled;
  } else {
    base = memory_.Allocate(std::max<uint64_t>(total, 16), 4096);
    if (base != 0) blocks_.push_back(base);
  }
  if (base == 0) return false;
  for (auto [v, offset] : placed) {
    symbols_[v->name].value = base + offset;
    global_infos_.push_back(
        {std::string(v->name), base + offset, v->bytes, space == Space::kConst, v->managed});
  }
  return true;
}

void ProgramImpl::FillVariables(const PtxModule& module) {
  for (const Variable& v : module.variables) {
    if (v.space != Space::kGlobal && v.space != Space::kConst) continue;
    if (v.reference != Reference::kNone || (v.managed && managed_filled_)) continue;
    const Symbol& self = symbols_[v.name];
    if (v.initializers.size() > v.bytes / std::max<uint64_t>(v.element_bytes, 1)) {
      throw PtxError(v.line, "too many initial values for " + std::string(v.name));
    }
    uint64_t address = self.value;
    for (const Initializer& value : v.initializers) {
      uint64_t bits = ElementBits(value, v.type);
      if (!value.symbol.empty()) {
        auto it = symbols_.find(value.symbol);
        if (it == symbols_.end()) {
          throw PtxError(value.line, "unknown name " + std::string(value.symbol));
        }
        bool function = it->second.kind == Symbol::Kind::kFunction;
        bits = value.bits + (function ? functions_[it->second.value]->handle : it->second.value);
      }
      std::memcpy(reinterpret_cast<void*>(address), &bits, std::min<uint64_t>(v.element_bytes, 8));
      address += v.element_bytes;
    }
  }
}

// A shared variable that one kernel alone names lies in that kernel's own part; one that device
// functions or several kernels name lies at the same offset, in front, in all that reach it.
void ProgramImpl::PlaceShared(const PtxModule& module) {
  std::unordered_map<std::string_view, const Variable*> shared;
  for (const Variable& v : module.variables) {
    if (v.space != Space::kShared) continue;
    if (v.external)
      symbols_.try_emplace(v.name, Symbol{Symbol::Kind::kDynamicShared, 0, 0});
    else
      shared.try_emplace(v.name, &v);
  }
  std::unordered_map<std::string_view, std::set<size_t>> users;
  std::vector<std::set<size_t>> callees(functions_.size());
  std::vector<bool> indirect(functions_.size());
  for (const PtxFunction& f : module.functions) {
    if (!f.has_body) continue;
    size_t index = symbols_[f.name].value;
    for (const PtxInstruction& instruction : f.body) {
      VisitSymbols(instruction.operands, [&](std::string_view name) {
        if (shared.count(name) != 0) users[name].insert(index);
        auto it = symbols_.find(name);
        if (it == symbols_.end() || it->second.kind != Symbol::Kind::kFunction) return;
        callees[index].insert(it->second.value);
        indirect[index] = indirect[index] || instruction.opcode != "call";
      });
      if (instruction.opcode == "call" && !instruction.operands.empty()) {
        for (const PtxOperand& o : instruction.operands) {
          if (o.kind == PtxOperand::Kind::kRegister) indirect[index] = true;
        }
      }
    }
  }
  uint64_t common_bytes = 0;
  std::set<size_t> common_users;
  std::vector<std::pair<const Variable*, size_t>> own;
  for (const Variable& v : module.variables) {
    auto it = shared.find(v.name);
    if (it == shared.end() || it->second != &v) continue;
    const std::set<size_t>& by = users[v.name];
    if (by.empty() || (by.size() == 1 && functions_[*by.begin()]->entry)) {
      own.emplace_back(&v, by.empty() ? functions_.size() : *by.begin());
      continue;
    }
    common_bytes = AlignUp(common_bytes, v.alignment);
    symbols_[v.name] = Symbol{Symbol::Kind::kShared, common_bytes, v.bytes};
    common_bytes += v.bytes;
    common_users.insert(by.begin(), by.end());
  }
  shared_bytes_.assign(functions_.size() + 1, 0);
  for (size_t i = 0; i < functions_.size() && common_bytes > 0; ++i) {
    std::set<size_t> seen = {i};
    std::vector<size_t> todo = {i};
    while (!todo.empty() && shared_bytes_[i] == 0) {
      size_t at = todo.back();
      todo.pop_back();
      if (common_users.count(at) != 0 || indirect[at]) shared_bytes_[i] = common_bytes;
      for (size_t next : callees[at]) {
        if (seen.insert(next).second) todo.push_back(next);
      }
    }
  }
  for (auto [v, user] : own) {
    uint64_t offset = AlignUp(shared_bytes_[user], v->alignment);
    symbols_[v->name] = Symbol{Symbol::Kind::kShared, offset, v->bytes};
    shared_bytes_[user] = offset + v->bytes;
  }
}

// What a body names has to be defined, but in a part that is still to be linked.
void ProgramImpl::CheckReferences(const PtxFunction& source) const {
  for (const PtxInstruction& instruction : source.body) {
    VisitSymbols(instruction.operands, [&](std::string_view name) {
      auto it = symbols_.find(name);
      if (it == symbols_.end() || it->second.kind != Symbol::Kind::kFunction) return;
      if (functions_[it->second.value]->has_body || IsDeviceRuntimeName(name) ||
          FindBuiltin(name) != nullptr) {
        return;
      }
      throw PtxError(instruction.line, "undefined reference to '" + std::string(name) + "' in '" +
                                           std::string(source.name) + "'");
    });
  }
}

void ProgramImpl::LowerFunctions(const PtxModule& module) {
  for (const PtxFunction& source : module.functions) {
    if (!source.has_body) continue;
    CheckBody(source);
    if (!is_part_) CheckReferences(source);
    CodeFunction& function = *functions_[symbols_[source.name].value];
    Lowering(source, symbols_, functions_, function).Run();
    size_t words = 0;
    for (Type type : source.registers) words += TypeBytes(type) == 8 ? 2 : 1;
    function.used_registers = static_cast<uint32_t>(std::clamp<size_t>(words / 2, 16, 255));
  }
}

void ProgramImpl::ListKernels(const PtxModule& module) {
  for (const PtxFunction& source : module.functions) {
    if (!source.entry || !source.has_body) continue;
    size_t index = symbols_[source.name].value;
    const CodeFunction& function = *functions_[index];
    auto kernel = std::make_unique<Kernel>();
    KernelInfo info;
    info.name = source.name;
    uint64_t end = 0;
    for (const Variable& v : source.parameters) {
      end = AlignUp(end, v.alignment);
      info.parameters.push_back({end, v.bytes});
      end += v.bytes;
    }
    std::set<const CodeFunction*> seen = {&function};
    std::vector<const CodeFunction*> todo = {&function};
    uint32_t registers = 0;
    while (!todo.empty()) {
      const CodeFunction* f = todo.back();
      todo.pop_back();
      registers = std::max(registers, f->used_registers);
      kernel->uses_reserved_shared |= f->uses_reserved_shared;
      if (kernel->unsupported.empty()) kernel->unsupported = f->unsupported;
      for (const CodeFunction* callee : f->callees) {
        if (seen.insert(callee).second) todo.push_back(callee);
      }
    }
    kernel->function = &function;
    kernel->module = this;
    kernel->parameter_bytes = info.parameter_bytes = end;
    kernel->static_shared_bytes =
        static_cast<uint32_t>(std::min<uint64_t>(AlignUp(shared_bytes_[index], 16), 1u << 30));
    kernel->max_threads = source.max_threads > 0 ? source.max_threads : 1024;
    std::copy_n(source.cluster, 3, kernel->cluster);
    kernel->needs_cluster = source.needs_cluster;
    kernel->most_cluster_blocks = source.most_cluster_blocks;
    info.kernel = kernel.get();
    info.static_shared_bytes = shared_bytes_[index];
    info.local_bytes_per_thread = function.local_bytes;
    info.registers_per_thread = static_cast<int>(registers);
    info.max_threads_per_block = kernel->max_threads;
    info.target = module.target;
    std::copy_n(source.cluster, 3, info.cluster);
    info.needs_cluster = source.needs_cluster;
    info.most_cluster_blocks = source.most_cluster_blocks;
    info.unsupported = kernel->unsupported;
    kernel_infos_.push_back(std::move(info));
    kernels_.push_back(std::move(kernel));
  }
}

Status ProgramImpl::Build(std::string_view ptx) {
  text_ = ptx;
  if (!StartsAsPtx(text_)) return {kInvalidImage, "no .version: this is no PTX"};
  PtxModule module = ParsePtx(text_);
  if (module.version > kMaxVersion) return {kUnsupportedPtxVersion, "a newer version of PTX"};
  DeclareFunctions(module);
  DeclareReferences(module);
  if (!PlaceVariables(module)) return {2, "no device memory for the module's variables"};
  PlaceShared(module);
  FillVariables(module);
  LowerFunctions(module);
  ListKernels(module);
  symbols_.clear();  // its names point into the text
  text_.clear();
  text_.shrink_to_fit();
  return {};
}

namespace {

// For variables of what is only looked at.
class LookedAtMemory : public ModuleMemory {
 public:
  ~LookedAtMemory() override { Unmap(managed_); }
  uint64_t Allocate(uint64_t bytes, uint64_t) override {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return 0;
    auto address = reinterpret_cast<uint64_t>(memory);
    bytes_[address] = bytes;
    return address;
  }
  void Free(uint64_t address) override { Unmap(address); }
  Managed AllocateManaged(uint64_t bytes) override {
    managed_ = Allocate(bytes, 16);
    return {managed_, false};
  }

 private:
  void Unmap(uint64_t address) {
    auto found = bytes_.find(address);
    if (found == bytes_.end()) return;
    munmap(reinterpret_cast<void*>(address), found->second);
    bytes_.erase(found);
  }

  std::map<uint64_t, uint64_t> bytes_;
  uint64_t managed_ = 0;
};

}  // namespace

Status Program::CheckPart(std::string_view ptx) {
  LookedAtMemory memory;
  ProgramImpl program(memory, true);
  try {
    return program.Build(ptx);
  } catch (const PtxError& error) {
    return {kInvalidPtx, error.what()};
  }
}

std::unique_ptr<Program> Program::Load(std::string_view ptx, ModuleMemory& memory, Status* status) {
  auto program = std::make_unique<ProgramImpl>(memory);
  try {
    *status = program->Build(ptx);
  } catch (const PtxError& error) {
    *status = {kInvalidPtx, error.what()};
  }
  if (!status->ok()) return nullptr;
  return program;
}

}  // namespace softgpu
