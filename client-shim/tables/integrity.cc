#include "client-shim/tables/integrity.h"

#include <cstring>
#include <vector>

#include "client-shim/tables/md2.h"

namespace longwire::shim {
namespace {

constexpr Md2::Digest kKey = {0x14, 0x6a, 0xdd, 0xae, 0x53, 0xa9, 0xa7, 0x52,
                              0xaa, 0x08, 0x41, 0x36, 0x0b, 0xf5, 0x5a, 0x9f};

// Rounds 0 and 1 of the three the runtime plays have fixed answers; only round 2 is compared.
constexpr uint64_t kRoundZero[2] = {0x3341181C03CB675C, 0x8ED383AA1F4CD1E8};
constexpr uint64_t kRoundOne[2] = {0x1841181C03CB675C, 0x8ED383AA1F4CD1E8};

// All fields are naturally aligned without gaps, so the structures are the message.
static_assert(sizeof(IntegrityInputs) == 48);
static_assert(sizeof(IntegrityDevice) == 28);

template <class T>
void Append(std::vector<uint8_t>& message, const T& value) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
  message.insert(message.end(), bytes, bytes + sizeof(T));
}

}  // namespace

void AnswerIntegrityCheck(const IntegrityInputs& inputs, std::span<const IntegrityDevice> devices,
                          uint64_t result[2]) {
  uint32_t round = inputs.version % 10;
  if (round < 2) {
    std::memcpy(result, round == 0 ? kRoundZero : kRoundOne, sizeof(kRoundZero));
    return;
  }
  std::vector<uint8_t> message;
  Append(message, inputs);
  for (const IntegrityDevice& device : devices) Append(message, device);
  Md2::Digest digest = HmacMd2(kKey, message);
  std::memcpy(result, digest.data(), digest.size());
}

}  // namespace longwire::shim
