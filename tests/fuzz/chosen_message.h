// Messages of server/protocol/ whose fields an input chooses: mostly numbers that mean something to
// the receiver, then limits of sizes, and anything.
#pragma once

#include <fuzzer/FuzzedDataProvider.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "server/protocol/message.h"

namespace longwire::fuzz {

class ChosenMessage {
 public:
  // `known`: numbers that the receiver has given out or knows otherwise, and sizes.
  ChosenMessage(FuzzedDataProvider& input, const std::vector<uint64_t>& known)
      : input_(input), known_(known) {}

  template <class M>
  M Make() {
    M message;
    Choose(message);
    return message;
  }

  // The packet of a message of one of these kinds, or arbitrary bytes.
  template <class... Messages>
  std::vector<std::byte> PacketOf() {
    size_t chosen = input_.ConsumeIntegralInRange<size_t>(0, sizeof...(Messages));
    std::vector<std::byte> packet;
    size_t index = 0;
    ((index++ == chosen ? void(packet = message::Pack(Make<Messages>())) : void()), ...);
    if (chosen == sizeof...(Messages)) {
      packet = input_.ConsumeBytes<std::byte>(input_.ConsumeIntegral<uint8_t>());
    }
    if (input_.ConsumeIntegral<uint8_t>() == 0 && !packet.empty()) packet.pop_back();
    return packet;
  }

  uint64_t Number() {
    constexpr std::array kLimits = {UINT64_MAX,        uint64_t{1} << 63, UINT64_MAX - 4095,
                                    uint64_t{1} << 32, uint64_t{1} << 31, uint64_t{0xffffffff},
                                    uint64_t{1} << 46, uint64_t{0}};
    uint8_t kind = input_.ConsumeIntegral<uint8_t>();
    if (kind < 176 && !known_.empty())
      return known_[input_.ConsumeIntegral<uint16_t>() % known_.size()];
    if (kind < 224) return kind % 8;
    if (kind < 248) return kLimits[kind % kLimits.size()];
    return input_.ConsumeIntegral<uint64_t>();
  }

 private:
  template <class T>
  static constexpr bool kIsOptional = false;
  template <class T>
  static constexpr bool kIsOptional<std::optional<T>> = true;

  template <class T>
  void Choose(T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
      value = input_.ConsumeRandomLengthString(80);
    } else if constexpr (std::is_same_v<T, bool>) {
      value = input_.ConsumeBool();
    } else if constexpr (std::is_integral_v<T>) {
      value = static_cast<T>(Number());
    } else if constexpr (kIsOptional<T>) {
      value.reset();
      if (input_.ConsumeBool()) Choose(value.emplace());
    } else if constexpr (requires { value.Fields(); }) {
      std::apply([&](auto&... fields) { (Choose(fields), ...); }, value.Fields());
    } else {
      size_t size = input_.ConsumeIntegral<uint8_t>() % 8;
      value.resize(size == 7 ? 70 : size);
      for (auto& element : value) Choose(element);
    }
  }

  FuzzedDataProvider& input_;
  const std::vector<uint64_t>& known_;
};

}  // namespace longwire::fuzz
