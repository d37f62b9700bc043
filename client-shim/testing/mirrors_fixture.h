// Mirrors of a test's own memory, for tests with the fake session.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <ostream>
#include <string>
#include <vector>

#include "client-shim/mirror/mirrors.h"
#include "client-shim/stream/program_streams.h"
#include "client-shim/testing/fake_session.h"
#include "wire/page_delta.h"

namespace longwire::shim::testing {

inline constexpr uint64_t kPage = 4096;
inline constexpr uint64_t kDevice = 0x100000000;  // where the mirrored memory lies on the device

// A run of changed bytes that was sent.
struct Pushed {
  uint64_t mirror = 0;
  uint64_t offset = 0;
  std::string bytes;
  wire::PageForm form{};
  bool operator==(const Pushed&) const = default;
};
inline void PrintTo(const Pushed& run, std::ostream* out) {
  *out << "mirror " << run.mirror << " at " << run.offset << ": " << run.bytes.size()
       << " bytes, form " << static_cast<int>(run.form);
}

inline std::vector<Pushed> RunsOf(const std::vector<Record>& records) {
  std::vector<Pushed> runs;
  for (const Record& record : records) {
    calls::lwMirrorPush push;
    calls::lwMirrorState part;
    const bool is_part = record.call == CallId::lwMirrorState;
    if (is_part) part = record.As<calls::lwMirrorState>();
    if (record.call == CallId::lwMirrorPush) push = record.As<calls::lwMirrorPush>();
    std::vector<wire::DeltaRun> delta;
    EXPECT_EQ(wire::ReadDelta(is_part ? part.delta : push.delta, 64 * kPage, &delta),
              wire::WireResult::kOk);
    for (const wire::DeltaRun& run : delta) {
      runs.push_back(
          {is_part ? part.mirror : push.mirror, run.offset,
           std::string(reinterpret_cast<const char*>(run.bytes.data()), run.bytes.size()),
           run.form});
    }
  }
  return runs;
}

class MirrorsTest : public WithContext {
 protected:
  void SetUp() override {
    WithContext::SetUp();
    memory_ = MapPages(4);
    stream_ = NewTestStream();
  }
  void TearDown() override {
    for (Mirror* mirror : mirrors_) RemoveMirror(mirror);
    EXPECT_FALSE(AnyMirrors());
    munmap(memory_, 4 * kPage);
    WithContext::TearDown();
  }

  static char* MapPages(size_t pages) {
    void* memory =
        mmap(nullptr, pages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(memory, MAP_FAILED);
    return static_cast<char*>(memory);
  }
  uint64_t address(size_t page = 0) const {
    return reinterpret_cast<uint64_t>(memory_) + page * kPage;
  }
  // Mirrors the range; its number on the wire.
  uint64_t Add(const MirrorRange& range, MirrorStart start = MirrorStart::kZeroed) {
    fake_.Take();
    Mirror* mirror = nullptr;
    EXPECT_EQ(AddMirror(context_, range, start, &mirror), CUDA_SUCCESS);
    mirrors_.push_back(mirror);
    std::vector<Record> records = fake_.Take();
    for (const Record& record : records) {
      if (record.call == CallId::lwMirrorAdd) return record.As<calls::lwMirrorAdd>().mirror;
    }
    ADD_FAILURE() << "no mirror was added";
    return 0;
  }
  void Remove(size_t index) {
    RemoveMirror(mirrors_[index]);
    mirrors_.erase(mirrors_.begin() + static_cast<ptrdiff_t>(index));
  }
  // Queues work; what was sent before and with it.
  std::vector<Record> QueueWork(Stream* stream) {
    fake_.Take();
    {
      DeviceWork work(stream);
      Work(stream);
    }
    return fake_.Take();
  }
  std::vector<Record> QueueWork() { return QueueWork(stream_); }
  static std::vector<std::string> Names(const std::vector<Record>& records) {
    std::vector<std::string> names;
    for (const Record& record : records) names.emplace_back(CallName(record.call));
    return names;
  }
  // Waits for the stream's work, as a program does, and takes what that sent.
  std::vector<std::string> WaitAndTakeNames() {
    EXPECT_EQ(WaitForStream(stream_, stream_->last), CUDA_SUCCESS);
    return fake_.TakeNames();
  }
  // Until the device is idle for the client, and nothing is left to pull.
  void Settle() {
    EXPECT_EQ(SynchronizeContext(context_), CUDA_SUCCESS);
    EXPECT_EQ(ReturnDeviceWrites(), CUDA_SUCCESS);
    fake_.Take();
  }
  // The device writes the bytes: the next pull brings them.
  void DeviceWrites(uint64_t mirror, uint64_t offset, std::string bytes,
                    wire::PageForm form = wire::PageForm::kMasked) {
    std::vector<std::byte> before(kPage), now(kPage), delta;
    const uint64_t in_page = offset % kPage;
    for (size_t i = 0; i < bytes.size(); ++i) {
      now[in_page + i] = static_cast<std::byte>(bytes[i]);
      before[in_page + i] = ~now[in_page + i];
    }
    wire::AppendDelta(now, before.data(), offset - in_page, form, SIZE_MAX, &delta);
    fake_.OnCall<calls::lwMirrorPull>([this, mirror, delta](const Record& record) {
      auto pull = record.As<calls::lwMirrorPull>();
      if (pull.mirror == mirror) fake_.SendMirror(mirror, delta);
      if (pull.ticket != 0) fake_.SendMirror(pull.ticket, {});
      return Reply{};
    });
  }
  void DeviceWritesNothing() { DeviceWrites(0, 0, ""); }

  char* memory_ = nullptr;
  Stream* stream_ = nullptr;
  std::vector<Mirror*> mirrors_;
};

}  // namespace longwire::shim::testing
