#include "policy/access.h"

#include <array>
#include <optional>
#include <vector>

namespace longwire::policy {

namespace {

constexpr size_t kRegisters = 11;
constexpr size_t kFrame = 10;  // the register that points behind the stack
constexpr int64_t kSlot = 8;

// Classes of instructions, and parts of their codes (RFC 9669).
enum Class : uint8_t { kLd, kLdx, kSt, kStx, kAlu, kJmp, kJmp32, kAlu64 };
constexpr uint8_t kAdd = 0x00, kSub = 0x10, kMove = 0xb0, kNegate = 0x80, kSwap = 0xd0;
constexpr uint8_t kShiftLeft = 0x60, kShiftRight = 0x70, kShiftSigned = 0xc0;
constexpr uint8_t kByRegister = 0x08;
constexpr uint8_t kMemory = 0x60, kAtomic = 0xc0;  // modes of loads and stores
constexpr uint8_t kAlways = 0x05, kExit = 0x95;
constexpr uint8_t kTestBits = 0x45;  // jump if a register has bits of a constant

enum class Kind : uint8_t { kUnset, kNumber, kContext, kStack };

struct Value {
  Kind kind = Kind::kUnset;
  int64_t offset = 0;  // of a pointer, to the structure's begin or the stack's end
  bool is_set() const { return kind != Kind::kUnset; }
  bool is_pointer() const { return kind == Kind::kContext || kind == Kind::kStack; }
  bool operator==(const Value&) const = default;
};

constexpr Value kANumber{Kind::kNumber, 0};

// What registers and stack hold before an instruction.
struct State {
  std::array<Value, kRegisters> registers;
  std::array<Value, kStackBytes / kSlot> slots;

  // What differs between two paths cannot be used behind them.
  void Join(const State& other) {
    for (size_t i = 0; i < registers.size(); ++i) {
      if (registers[i] != other.registers[i]) registers[i] = {};
    }
    for (size_t i = 0; i < slots.size(); ++i) {
      if (slots[i] != other.slots[i]) slots[i] = {};
    }
  }
};

int64_t SizeOf(uint8_t code) {
  constexpr int64_t kSizes[] = {4, 2, 1, 8};
  return kSizes[(code & 0x18) >> 3];
}

class Access {
 public:
  Access(const HookCode& code, size_t context_bytes, std::string* sentence,
         std::map<uint32_t, Place>* places)
      : code_(code),
        context_bytes_(static_cast<int64_t>(context_bytes)),
        sentence_(sentence),
        places_(places),
        before_(code.instructions.size()) {}

  bool Check() {
    State first;
    first.registers[1] = {Kind::kContext, 0};
    first.registers[kFrame] = {Kind::kStack, 0};
    before_[0] = first;
    for (at_ = 0; at_ < before_.size(); ++at_) {
      if (!before_[at_]) continue;  // the second half of a constant
      State state = *before_[at_];
      if (!Step(&state)) return false;
      Pass(state);
    }
    return true;
  }

 private:
  bool Refuse(const std::string& what) {
    *sentence_ = code_.Place(static_cast<uint32_t>(at_)) + ": " + what;
    return false;
  }
  const Instruction& instruction() const { return code_.instructions[at_]; }
  size_t target() const { return instruction().registers & 0x0f; }
  size_t source() const { return instruction().registers >> 4; }

  // Where it goes on from here, with what it then holds.
  void Pass(const State& state) {
    const uint8_t code = instruction().code;
    if (code == kExit) return;
    if ((code & 0x07) == kJmp && code != kCall) Reach(at_ + 1 + instruction().offset, state);
    if (code != kAlways) Reach(at_ + (code == kLoadWide ? 2 : 1), state);
  }
  void Reach(size_t to, const State& state) {
    if (before_[to]) {
      before_[to]->Join(state);
    } else {
      before_[to] = state;
    }
  }

  bool Step(State* state) {
    if (target() >= kRegisters || source() >= kRegisters) {
      return Refuse("it names a register that there is none of: compile it again with clang");
    }
    const uint8_t code = instruction().code;
    const uint8_t kind = code & 0x07;
    const bool sets = kind == kLd || kind == kLdx || kind == kAlu64;
    if (sets && target() == kFrame) {
      return Refuse("it changes the frame pointer: compile it again with clang");
    }
    switch (kind) {
      case kLd:
        if (code != kLoadWide) return Refuse("it reads a packet, which there is none of");
        state->registers[target()] = kANumber;
        return true;
      case kLdx:
        return Load(state);
      case kSt:
      case kStx:
        return Store(state);
      case kAlu:
        return Refuse("arithmetic of 32 bits is not known: compile with -mcpu=v2");
      case kAlu64:
        return Compute(state);
      default:
        return Jump(state);
    }
  }

  bool RefuseUnset() {
    return Refuse("it uses a value that was never set, or is on one path only: set it first");
  }

  // Of the arguments of a helper the engine knows how many there are.
  bool Jump(State* state) {
    const uint8_t code = instruction().code;
    if (code == kCall) {
      std::fill_n(state->registers.begin(), 6, Value());
      state->registers[0] = kANumber;
      return true;
    }
    if (code == kExit) {
      return state->registers[0].kind == Kind::kNumber ||
             Refuse("it does not return a number on every path: return LW_ANSWERED");
    }
    if (code == kAlways) return true;
    // The engine's compiler makes wrong code of it. Clang does not use it.
    if (code == kTestBits) return Refuse("it jumps by bits of a constant: compare (x & BITS) to 0");
    const bool set = state->registers[target()].is_set() &&
                     ((code & kByRegister) == 0 || state->registers[source()].is_set());
    return set || RefuseUnset();
  }

  // Null with a sentence: it is no pointer, or leads elsewhere.
  const Value* PointerIn(const State& state, size_t where, int64_t* offset) {
    const Value& pointer = state.registers[where];
    *offset = pointer.offset + instruction().offset;
    const int64_t end = *offset + SizeOf(instruction().code);
    if (!pointer.is_set()) {
      RefuseUnset();
    } else if (!pointer.is_pointer()) {
      Refuse("it uses a number as a pointer: use fields of its argument only");
    } else if (pointer.kind == Kind::kContext && (*offset < 0 || end > context_bytes_)) {
      Refuse("it reads or writes outside of its argument: use the structure of its hook");
    } else if (pointer.kind == Kind::kStack && (*offset < -kStackBytes || end > 0)) {
      Refuse("it reads or writes outside of 512 bytes of stack: use fewer variables");
    } else {
      if (places_ != nullptr) {
        const bool on_stack = pointer.kind == Kind::kStack;
        (*places_)[static_cast<uint32_t>(at_)] = {on_stack, *offset + (on_stack ? kStackBytes : 0)};
      }
      return &pointer;
    }
    return nullptr;
  }

  static size_t SlotOf(int64_t offset) {
    return static_cast<size_t>((offset + kStackBytes) / kSlot);
  }
  bool IsWholeSlot(int64_t offset) const {
    return SizeOf(instruction().code) == kSlot && offset % kSlot == 0;
  }

  bool Load(State* state) {
    if ((instruction().code & 0xe0) != kMemory)
      return Refuse("it reads in a way that is not known");
    int64_t offset = 0;
    const Value* pointer = PointerIn(*state, source(), &offset);
    if (pointer == nullptr) return false;
    const bool kept = pointer->kind == Kind::kStack && IsWholeSlot(offset);
    const Value value = kept ? state->slots[SlotOf(offset)] : kANumber;
    // A slot that was written in parts, or not at all, which the engine finds out.
    state->registers[target()] = value.is_set() ? value : kANumber;
    return true;
  }

  bool Store(State* state) {
    const uint8_t mode = instruction().code & 0xe0;
    const bool by_register = (instruction().code & 0x07) == kStx;
    if (mode != kMemory && !(mode == kAtomic && by_register)) {
      return Refuse("it writes in a way that is not known");
    }
    int64_t offset = 0;
    const Value* pointer = PointerIn(*state, target(), &offset);
    if (pointer == nullptr) return false;
    const Value value = by_register ? state->registers[source()] : kANumber;
    if (!value.is_set()) return RefuseUnset();
    const bool keeps = pointer->kind == Kind::kStack && mode == kMemory && IsWholeSlot(offset);
    if (value.is_pointer() && !keeps) {
      return Refuse("it writes a pointer where a number belongs: write numbers only");
    }
    if (pointer->kind != Kind::kStack) return true;
    const int64_t last = offset + SizeOf(instruction().code) - 1;
    state->slots[SlotOf(offset)] = state->slots[SlotOf(last)] = {};
    if (keeps) state->slots[SlotOf(offset)] = value;
    return true;
  }

  static bool IsShift(uint8_t operation) {
    return operation == kShiftLeft || operation == kShiftRight || operation == kShiftSigned;
  }
  static bool IsWithin(int32_t bits, int32_t width) { return bits >= 0 && bits < width; }

  // Pointers are copied, and moved by constants; all else makes numbers of numbers.
  bool Compute(State* state) {
    const uint8_t code = instruction().code;
    const uint8_t operation = code & 0xf0;
    if (operation == kSwap) return Refuse("it changes the order of bytes: it has no need to");
    const bool by_register = (code & kByRegister) != 0 && operation != kNegate;
    if (!by_register && IsShift(operation) && !IsWithin(instruction().immediate, 64)) {
      return Refuse("it shifts by more bits than there are: shift by fewer");
    }
    Value& changed = state->registers[target()];
    const Value other = by_register ? state->registers[source()] : kANumber;
    if (!other.is_set() || (operation != kMove && !changed.is_set())) return RefuseUnset();
    if (operation == kMove) {
      changed = other;
      return true;
    }
    if (!changed.is_pointer() && !other.is_pointer()) return true;
    if (by_register || (operation != kAdd && operation != kSub)) {
      return Refuse("it computes with a pointer as with a number, which is not allowed");
    }
    changed.offset +=
        operation == kAdd ? instruction().immediate : -int64_t{instruction().immediate};
    return true;
  }

  const HookCode& code_;
  const int64_t context_bytes_;
  std::string* const sentence_;
  std::map<uint32_t, Place>* const places_;
  std::vector<std::optional<State>> before_;
  size_t at_ = 0;
};

}  // namespace

bool CheckAccess(const HookCode& code, size_t context_bytes, std::string* sentence,
                 std::map<uint32_t, Place>* places) {
  return Access(code, context_bytes, sentence, places).Check();
}

}  // namespace longwire::policy
