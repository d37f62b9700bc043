// The session of a test program, with the test in the server's place.
//
// The parts of the client's library use the one ClientSession of the process: they append calls,
// wait for replies and for streams' progress, and take in what the server sends. This is such a
// ClientSession, as shipped, over two rings in memory. Its only seam is the wire: a thread of the
// fake reads the records, keeps them for the test, and answers them as the test wants. An interface
// between the parts and the session would put a virtual call on the path of a launch and would
// change most files of the client; the rings are what a ClientSession is given anyway, and records
// and replies are encoded and decoded by the generated code.
//
// A process has one session, and so has a test program: a test makes contexts, streams and device
// memory of its own.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "client-shim/context/context.h"
#include "client-shim/session/session.h"
#include "client-shim/stream/stream.h"
#include "longwire/calls.h"

namespace longwire::shim::testing {

inline constexpr uint64_t kMiB = uint64_t{1} << 20;
inline constexpr uint64_t kGranularity = 2 * kMiB;
inline constexpr uint64_t kLargestChunk = 512 * kMiB;
inline constexpr uint64_t kWindowBytes = 8192 * kMiB;

// A call as it came.
struct Record {
  uint64_t position = 0;
  CallId call{};
  wire::RecordHeader header{};
  std::vector<std::byte> arguments;  // of the call, encoded

  // The decoded call, whose views point into the record.
  template <class Call>
  Call As() const {
    EXPECT_EQ(call, Call::kId) << CallName(call);
    Call decoded;
    wire::Reader reader(arguments);
    EXPECT_EQ(decoded.Decode(reader), wire::WireResult::kOk) << CallName(call);
    return decoded;
  }
};

// A reply, encoded.
struct Reply {
  CUresult code = CUDA_SUCCESS;
  std::vector<std::byte> payload;

  template <class Encoded>
  static Reply With(const Encoded& reply) {
    Reply made;
    made.payload.resize(reply.EncodedBytes());
    wire::Writer writer(made.payload);
    reply.Encode(writer);
    return made;
  }
};

class FakeSession {
 public:
  // The process's session, which has one device. It is opened at the first use.
  static FakeSession& Get();

  // The records that have come since the last call. All that the program has appended are there.
  std::vector<Record> Take();
  // The same, their names only.
  std::vector<std::string> TakeNames();
  // What the client told of its round trips, nanoseconds; those records are not among the others.
  std::vector<uint64_t> TakeRoundTrips();
  // Those of one call, and the others are dropped.
  template <class Call>
  std::vector<Record> TakeOnly() {
    std::vector<Record> records = Take();
    std::erase_if(records, [](const Record& record) { return record.call != Call::kId; });
    return records;
  }

  // The reply to each record of this call; none: it is not answered. Runs on the fake's thread.
  // Without one, memory is lent, and all other calls get success and zeros.
  using Answer = std::function<std::optional<Reply>(const Record&)>;
  template <class Call>
  void OnCall(Answer answer) {
    SetAnswer(Call::kId, std::move(answer));
  }
  // No answers of the test any more, 4 GiB to lease, and no records from before.
  void Reset();

  // What a server sends by itself.
  void SendReply(uint64_t position, const Reply& reply);
  void SendMirror(uint64_t mirror, std::span<const std::byte> delta);
  // Any record, whose payload begins with these numbers.
  void SendRecord(wire::DownKind kind, uint64_t position, std::initializer_list<uint64_t> numbers,
                  std::string_view rest = {});

  // Work of streams completes as soon as it is read, except in streams that are held.
  void Hold(Stream* stream);
  void LetGo(Stream* stream);  // returns when the program knows that the stream is idle

  // Bytes that lwLease lends at most, from now on.
  void SetMemory(uint64_t bytes);
  uint64_t leased();

  // The client has ended the session, and said so.
  bool Ended() const { return up_->closed(); }

  // A window of addresses, of kWindowBytes, for device memory that a test makes itself.
  static wire::Window NewWindow();

 private:
  FakeSession();
  void Run();
  void Handle(const Record& record) LONGWIRE_EXCLUDES(mutex_);
  std::optional<Reply> Standard(const Record& record) LONGWIRE_REQUIRES(mutex_);
  Reply Lease(const Record& record) LONGWIRE_REQUIRES(mutex_);
  void SetAnswer(CallId call, Answer answer);
  void Send(wire::DownKind kind, uint64_t position, CUresult code,
            std::span<const std::byte> payload) LONGWIRE_REQUIRES(mutex_);
  void SendProgress(uint64_t stream, uint64_t position) LONGWIRE_REQUIRES(mutex_);

  std::shared_ptr<wire::RingMemory> up_, down_;
  base::Mutex mutex_;
  base::CondVar read_changed_;
  wire::RingProducer to_program_ LONGWIRE_GUARDED_BY(mutex_);
  uint64_t read_ LONGWIRE_GUARDED_BY(mutex_) = 0;  // position up to which records were handled
  std::vector<Record> records_ LONGWIRE_GUARDED_BY(mutex_);
  std::vector<uint64_t> round_trips_ LONGWIRE_GUARDED_BY(mutex_);  // that the client measured
  std::map<CallId, Answer> answers_ LONGWIRE_GUARDED_BY(mutex_);
  std::set<uint64_t> held_ LONGWIRE_GUARDED_BY(mutex_);              // by stream id
  std::map<uint64_t, uint64_t> newest_ LONGWIRE_GUARDED_BY(mutex_);  // of held streams
  uint64_t memory_ LONGWIRE_GUARDED_BY(mutex_) = 0;
  uint64_t leased_ LONGWIRE_GUARDED_BY(mutex_) = 0;
  uint64_t next_chunk_ LONGWIRE_GUARDED_BY(mutex_) = 1;
  std::map<uint64_t, uint64_t> chunks_ LONGWIRE_GUARDED_BY(mutex_);  // lent: bytes
};

// A test with a context of its own, which is current.
class WithContext : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // In the test's context; destroyed with it.
  Stream* NewTestStream(StreamKind kind = StreamKind::kBlocking);
  // Queues work that the stream does not finish by itself while it is held. Its position.
  uint64_t Work(Stream* stream);

  FakeSession& fake_ = FakeSession::Get();
  Context* context_ = nullptr;
};

// Waits until `done`, and fails after ten seconds.
::testing::AssertionResult Eventually(const std::function<bool()>& done);

}  // namespace longwire::shim::testing
