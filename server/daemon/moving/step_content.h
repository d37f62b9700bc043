// What a worker writes, in pieces, as HandOverStep messages whose one field is `content`: made and
// read without protobuf, which would copy gigabytes twice at either end.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace longwire::daemon {

// Bytes of content in one message: a frame is not larger than wire::kMaxBatchBytes.
inline constexpr size_t kStepBytes = (size_t{1} << 20) - 4096;

// One that is being filled.
class ContentStep {
 public:
  ContentStep() : bytes_(new std::byte[kHead + kStepBytes]) {}

  // Where what comes next belongs; empty once it is full.
  std::span<std::byte> room() { return {bytes_.get() + kHead + filled_, kStepBytes - filled_}; }
  void Filled(size_t bytes) { filled_ += bytes; }
  bool empty() const { return filled_ == 0; }
  // The message, with its head before the content.
  std::span<const std::byte> Message();
  const std::shared_ptr<std::byte[]>& memory() const { return bytes_; }

 private:
  // Its tag, and a length of up to three bytes.
  static constexpr size_t kHead = 4;

  std::shared_ptr<std::byte[]> bytes_;
  size_t filled_ = 0;
};

// A received message, in parts that lie in memory which lives as long as this.
struct StepMessage {
  std::shared_ptr<const void> memory;
  std::vector<std::span<const std::byte>> parts;
};

// Leaves of such a message's parts the content. False, and as it was, if it is another message.
bool LeaveContent(StepMessage* message);

}  // namespace longwire::daemon
