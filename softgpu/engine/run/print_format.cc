#include "softgpu/engine/run/print_format.h"

#include <cstdio>
#include <cstring>
#include <string_view>

#include "softgpu/engine/memory/private_memory.h"

namespace softgpu {
namespace {

constexpr size_t kMaxString = 4096;  // bytes
constexpr int kMaxWidth = 512;

bool Readable(const Arena& arena, uint64_t address, uint64_t bytes) {
  return arena.Allows(address, bytes) || PrivateMemory::Get().Contains(address, bytes);
}

// Takes arguments one after another: 4 or 8 bytes each, aligned to their size.
class Arguments {
 public:
  Arguments(const Arena& arena, uint64_t address) : arena_(arena), next_(address) {}

  uint64_t Take(size_t bytes) {
    next_ = (next_ + bytes - 1) / bytes * bytes;
    uint64_t value = 0;
    if (!Readable(arena_, next_, bytes)) {
      bad_ = true;
      return 0;
    }
    std::memcpy(&value, reinterpret_cast<const void*>(next_), bytes);
    next_ += bytes;
    ++count_;
    return value;
  }
  bool bad() const { return bad_; }
  int count() const { return count_; }

 private:
  const Arena& arena_;
  uint64_t next_;
  int count_ = 0;
  bool bad_ = false;
};

struct Field {
  std::string spec = "%";  // for snprintf, without length modifier and conversion
  bool wide = false;       // 64-bit integer
  char conversion = 0;
};

int Bounded(int value) {
  return value > kMaxWidth ? kMaxWidth : value < -kMaxWidth ? -kMaxWidth : value;
}

void ReadNumber(const std::string& format, size_t* at, Arguments& arguments, std::string* spec) {
  if (*at < format.size() && format[*at] == '*') {
    *spec += std::to_string(Bounded(static_cast<int>(arguments.Take(4))));
    ++*at;
    return;
  }
  int value = 0;
  bool any = false;
  for (; *at < format.size() && format[*at] >= '0' && format[*at] <= '9'; ++*at) {
    value = Bounded(value * 10 + format[*at] - '0');
    any = true;
  }
  if (any) *spec += std::to_string(value);
}

// Reads one conversion after its '%'; leaves `at` behind it.
Field ReadField(const std::string& format, size_t* at, Arguments& arguments) {
  Field field;
  while (*at < format.size() && std::strchr("-+ #0", format[*at]) != nullptr) {
    field.spec += format[(*at)++];
  }
  ReadNumber(format, at, arguments, &field.spec);
  if (*at < format.size() && format[*at] == '.') {
    field.spec += format[(*at)++];
    ReadNumber(format, at, arguments, &field.spec);
  }
  while (*at < format.size() && std::strchr("hljztL", format[*at]) != nullptr) {
    field.wide |= std::strchr("ljzt", format[*at]) != nullptr;
    ++*at;
  }
  if (*at < format.size()) field.conversion = format[(*at)++];
  return field;
}

template <class T>
void Print(const std::string& spec, T value, std::string* text) {
  char buffer[kMaxString];
  int n = std::snprintf(buffer, sizeof buffer, spec.c_str(), value);
  if (n > 0) text->append(buffer, std::min<size_t>(static_cast<size_t>(n), sizeof buffer - 1));
}

void PrintField(const Arena& arena, const Field& field, Arguments& arguments, std::string* text) {
  std::string spec = field.spec;
  switch (field.conversion) {
    case 'd':
    case 'i':
      if (field.wide) return Print(spec + "lld", static_cast<long long>(arguments.Take(8)), text);
      return Print(spec + "d", static_cast<int>(arguments.Take(4)), text);
    case 'u':
    case 'x':
    case 'X':
    case 'o':
      if (field.wide) return Print(spec + "ll" + field.conversion, arguments.Take(8), text);
      return Print(spec + field.conversion, static_cast<unsigned>(arguments.Take(4)), text);
    case 'c':
      return Print(spec + "c", static_cast<int>(arguments.Take(4)), text);
    case 'f':
    case 'F':
    case 'e':
    case 'E':
    case 'g':
    case 'G':
    case 'a':
    case 'A': {
      uint64_t bits = arguments.Take(8);
      double value = 0;
      std::memcpy(&value, &bits, sizeof value);
      return Print(spec + field.conversion, value, text);
    }
    case 'p':
      return Print(spec + "p", reinterpret_cast<void*>(arguments.Take(8)), text);
    case 's':
      return Print(spec + "s", ReadDeviceString(arena, arguments.Take(8)).c_str(), text);
    default:
      *text += spec;
      if (field.conversion != 0) *text += field.conversion;
  }
}

}  // namespace

std::string ReadDeviceString(const Arena& arena, uint64_t address) {
  std::string text;
  while (text.size() < kMaxString && Readable(arena, address, 1)) {
    char c = *reinterpret_cast<const char*>(address++);
    if (c == '\0') break;
    text += c;
  }
  return text;
}

int FormatDevicePrint(const Arena& arena, uint64_t format_address, uint64_t argument_address,
                      std::string* text) {
  if (!Readable(arena, format_address, 1)) return -2;
  std::string format = ReadDeviceString(arena, format_address);
  Arguments arguments(arena, argument_address);
  for (size_t at = 0; at < format.size() && !arguments.bad();) {
    if (format[at] != '%') {
      *text += format[at++];
    } else if (at + 1 < format.size() && format[at + 1] == '%') {
      *text += '%';
      at += 2;
    } else {
      ++at;
      Field field = ReadField(format, &at, arguments);
      PrintField(arena, field, arguments, text);
    }
  }
  return arguments.bad() ? -2 : arguments.count();
}

}  // namespace softgpu
