// A session on a fake driver in the test's own process, with the client's ends of its logs.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "longwire/calls.h"
#include "server/worker/process/session.h"
#include "server/worker/testing/fake_driver.h"
#include "wire/record.h"

namespace longwire::worker::testing {

struct DownRecord {
  wire::DownHeader header{};
  std::vector<std::byte> payload;
  size_t order = 0;                         // place among all records that came
  uint64_t Number(size_t index = 0) const;  // the payload's index-th u64
  std::string Text(size_t from) const;
};

// A stretch of memory, and bytes to put there that repeat late.
calls::Place Linear(void* address, uint64_t bytes);
std::vector<std::byte> Pattern(size_t bytes);

// As the fake driver knows it.
std::vector<Device> OneDevice();

class TestSession {
 public:
  static constexpr uint32_t kContext = 1;
  static constexpr uint64_t kLibrary = 901;  // of LoadFunction and LoadImage

  // On the fake driver, with one device. `bridges`: an entry of OpenRequest::environment.
  explicit TestSession(std::shared_ptr<gates::GatePage> page = nullptr, uint32_t lanes = 0,
                       const std::string& bridges = {});
  // On another driver. A context of it must be current.
  // `control` is the daemon's socket, for images.
  TestSession(const DriverTable& table, std::vector<Device> devices, int control = -1,
              uint32_t lanes = 0);
  ~TestSession();

  // Appends a call's record and returns its position.
  template <class Call>
  uint64_t Send(const Call& call, uint64_t stream = 0, uint16_t flags = 0, uint32_t thread = 1) {
    wire::Writer writer;
    call.Encode(writer);
    return SendRaw(static_cast<uint16_t>(Call::kId), writer.span(), stream, flags, thread);
  }
  uint64_t SendRaw(uint16_t call, std::span<const std::byte> arguments, uint64_t stream = 0,
                   uint16_t flags = 0, uint32_t thread = 1);
  void Append(std::span<const std::byte> bytes);

  // Bytes of the log: those that were sent, and those that the worker has taken.
  uint64_t sent() { return producer_->written(); }
  uint64_t taken() { return producer_->released(); }

  uint64_t CreateStream(uint64_t id, StreamKind kind = StreamKind::kNonBlocking);
  // Loads a module whose one function launches as number `function`.
  uint64_t LoadFunction();
  uint64_t LoadImage(std::span<const std::byte> image);
  uint64_t Launch(uint64_t stream, uint8_t mark, uint16_t flags = 0);

  // Waits for the first record (of those not yet taken) that fits; fails the test after 5 s.
  DownRecord Expect(wire::DownKind kind, const std::function<bool(const DownRecord&)>& fits = {});
  DownRecord ExpectReply(uint64_t position);  // to the call there
  DownRecord ExpectProgress(uint64_t stream, uint64_t position);
  // One that has come, if any has.
  std::optional<DownRecord> Take(wire::DownKind kind);
  // True if no such record comes within a moment.
  bool Quiet(wire::DownKind kind);
  // Waits until `done`; fails the test after 5 s.
  void Until(const std::function<bool()>& done, const char* what);

  FakeDriver driver;
  std::shared_ptr<wire::RingMemory> up, down;
  std::unique_ptr<WorkerSession> session;
  std::atomic<bool> over{false};

 private:
  void Begin(const DriverTable& table, std::vector<Device> devices,
             std::shared_ptr<gates::GatePage> page = nullptr, uint32_t lanes = 0, int control = -1,
             const std::string& bridges = {});
  bool Find(wire::DownKind kind, const std::function<bool(const DownRecord&)>& fits,
            DownRecord* record);
  void Read();

  std::unique_ptr<wire::RingProducer> producer_;
  std::unique_ptr<wire::RingConsumer> consumer_;
  std::vector<DownRecord> records_;
  uint64_t function_ = 0;
  size_t read_ = 0;
};

}  // namespace longwire::worker::testing
