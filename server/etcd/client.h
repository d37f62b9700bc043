// A client of etcd: each call goes to the member that answered last, has a second, and then goes to
// the next member. Thread-safe.
//
// An answer that was lost looks like no answer: a change may have been made all the same, also when
// the next member then says that a transaction's comparisons failed. So whoever changes something
// compares revisions, and reads again when it is not sure.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "link/transport/tls_files.h"
#include "server/etcd/etcd.grpc.pb.h"

namespace longwire::etcd {

namespace pb = ::etcdserverpb;

struct Options {
  std::vector<std::string> members;           // "host:port"
  std::optional<transport::TlsMaterial> tls;  // none: not encrypted
  std::chrono::milliseconds patience{1000};   // of one call with one member
};

class Client {
 public:
  explicit Client(Options options);

  // At the process's end: what is not answered by then is not waited for, nor asked.
  void EndWithin(std::chrono::milliseconds time);

  // How often etcd was behind what it had said before: it was restored from an older copy.
  uint64_t went_back() const { return went_back_.load(); }

  // Each is true on success; else false with a sentence for people.
  bool Range(const pb::RangeRequest& request, pb::RangeResponse* reply, std::string* sentence);
  bool Put(const pb::PutRequest& request, pb::PutResponse* reply, std::string* sentence);
  bool Delete(const pb::DeleteRangeRequest& request, pb::DeleteRangeResponse* reply,
              std::string* sentence);
  // True also when the comparisons failed: reply->succeeded() says that.
  bool Txn(const pb::TxnRequest& request, pb::TxnResponse* reply, std::string* sentence);
  // `seconds` to live without being kept alive.
  bool Grant(int64_t seconds, int64_t* lease, std::string* sentence);
  // *alive is false when etcd does not know the lease any more.
  bool KeepAlive(int64_t lease, bool* alive, std::string* sentence);
  bool Revoke(int64_t lease, std::string* sentence);

  // Watches the range from `revision` on and gives each message to `take`, until the stream ends,
  // the member has no leader, or `goes_on` is false, which is asked for a few times a second.
  void Watch(const std::string& key, const std::string& range_end, int64_t revision,
             const std::function<bool()>& goes_on,
             const std::function<void(const pb::WatchResponse&)>& take);

 private:
  struct Member {
    std::string name;
    std::shared_ptr<grpc::Channel> channel;
  };

  // Calls `attempt` for one member after the other until one answers.
  using Attempt = std::function<grpc::Status(const Member& member, grpc::ClientContext& context)>;
  bool Try(const Attempt& attempt, std::string* sentence);
  // The same; the reply tells a revision, which is not before those that were known at the call.
  template <class Reply>
  bool TryAndNote(const Attempt& attempt, const Reply& reply, std::string* sentence);

  std::vector<Member> members_;
  const std::chrono::milliseconds patience_;
  std::atomic<size_t> current_{0};
  std::atomic<int64_t> newest_{0};  // revision
  std::atomic<uint64_t> went_back_{0};
  using Clock = std::chrono::steady_clock;
  std::atomic<Clock::time_point> end_{Clock::time_point::max()};
};

// The end of the range of all keys that begin with `prefix`.
std::string EndOfPrefix(std::string prefix);

// Parts of transactions.
pb::Compare Absent(const std::string& key);
pb::Compare Present(const std::string& key);
pb::Compare CreatedAt(const std::string& key, int64_t revision);
pb::Compare ChangedAt(const std::string& key, int64_t revision);
pb::RequestOp PutOp(const std::string& key, const std::string& value, int64_t lease = 0);
pb::RequestOp DeleteOp(const std::string& key);
pb::RequestOp ReadOp(const std::string& key, const std::string& range_end = "");

}  // namespace longwire::etcd
