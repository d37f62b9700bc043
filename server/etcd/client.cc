#include "server/etcd/client.h"

#include <algorithm>
#include <thread>

#include "base/mutex.h"
#include "link/transport/spinning.h"

namespace longwire::etcd {
namespace {

// etcd's lists, a watch's first message among them, may be long.
constexpr int kLargestMessage = 64 << 20;
constexpr int kFirstBackoffMs = 100, kLastBackoffMs = 1000;
// etcd closes connections that ping more often than every 5 s.
constexpr int kPingMs = 6'000, kPingTimeoutMs = 3'000;
// How soon a watch notices that it shall stop.
constexpr std::chrono::milliseconds kStopLook{200};
// Between looks while another thread spins.
constexpr std::chrono::milliseconds kNap{1};

gpr_timespec After(std::chrono::milliseconds time) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_millis(time.count(), GPR_TIMESPAN));
}

// Whether another member would say the same: the request itself is refused.
bool IsAnswer(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::NOT_FOUND:
    case grpc::StatusCode::PERMISSION_DENIED:
    case grpc::StatusCode::UNAUTHENTICATED:
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
    case grpc::StatusCode::FAILED_PRECONDITION:
    case grpc::StatusCode::OUT_OF_RANGE:
      return true;
    default:
      return false;
  }
}

std::shared_ptr<grpc::Channel> Connect(const Options& options, const std::string& member) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kLargestMessage);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kFirstBackoffMs);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kLastBackoffMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kLastBackoffMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kPingMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeoutMs);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  auto credentials =
      options.tls ? transport::ClientCredentials(*options.tls) : grpc::InsecureChannelCredentials();
  return grpc::CreateCustomChannel(member, credentials, arguments);
}

std::string Explain(const std::string& member, const grpc::Status& status) {
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    return "etcd at " + member + " does not answer";
  }
  return "etcd at " + member + ": " + status.error_message();
}

}  // namespace

Client::Client(Options options) : patience_(options.patience) {
  for (const std::string& name : options.members) {
    members_.push_back({name, Connect(options, name)});
  }
}

void Client::EndWithin(std::chrono::milliseconds time) { end_.store(Clock::now() + time); }

bool Client::Try(const Attempt& attempt, std::string* sentence) {
  base::AssertNoRankedLockHeld();
  // A connection that was lost comes back only while somebody waits for it: when nobody has
  // answered, those that are not connected are waited for in turn.
  std::string all;
  std::vector<bool> waited(members_.size(), false);  // connected, but did not answer in time
  const size_t first = current_.load(), count = members_.size();
  for (size_t i = 0; i < 2 * count; ++i) {
    const size_t place = (first + i) % count;
    if (waited[place]) continue;
    const Member& member = members_[place];
    grpc::ClientContext context;
    const auto left = end_.load() - Clock::now();
    if (left.count() <= 0) {
      *sentence = "longwired ends";
      return false;
    }
    context.set_deadline(
        After(std::min(patience_, std::chrono::ceil<std::chrono::milliseconds>(left))));
    context.set_wait_for_ready(i >= count);
    grpc::Status status = attempt(member, context);
    if (status.ok()) {
      current_.store(place);
      return true;
    }
    *sentence = Explain(member.name, status);
    if (IsAnswer(status.error_code())) return false;
    all += (all.empty() ? "" : "; ") + *sentence;
    waited[place] = status.error_code() != grpc::StatusCode::UNAVAILABLE;
  }
  *sentence = all;
  return false;
}

template <class Reply>
bool Client::TryAndNote(const Attempt& attempt, const Reply& reply, std::string* sentence) {
  int64_t known = newest_.load();
  if (!Try(attempt, sentence)) return false;
  const int64_t now = reply.header().revision();
  if (now < known) {
    went_back_.fetch_add(1);
    newest_.store(now);
    return true;
  }
  while (known < now && !newest_.compare_exchange_weak(known, now)) {
  }
  return true;
}

bool Client::Range(const pb::RangeRequest& request, pb::RangeResponse* reply,
                   std::string* sentence) {
  return TryAndNote(
      [&](const Member& member, grpc::ClientContext& context) {
        return pb::KV::NewStub(member.channel)->Range(&context, request, reply);
      },
      *reply, sentence);
}

bool Client::Put(const pb::PutRequest& request, pb::PutResponse* reply, std::string* sentence) {
  return TryAndNote(
      [&](const Member& member, grpc::ClientContext& context) {
        return pb::KV::NewStub(member.channel)->Put(&context, request, reply);
      },
      *reply, sentence);
}

bool Client::Delete(const pb::DeleteRangeRequest& request, pb::DeleteRangeResponse* reply,
                    std::string* sentence) {
  return TryAndNote(
      [&](const Member& member, grpc::ClientContext& context) {
        return pb::KV::NewStub(member.channel)->DeleteRange(&context, request, reply);
      },
      *reply, sentence);
}

bool Client::Txn(const pb::TxnRequest& request, pb::TxnResponse* reply, std::string* sentence) {
  return TryAndNote(
      [&](const Member& member, grpc::ClientContext& context) {
        return pb::KV::NewStub(member.channel)->Txn(&context, request, reply);
      },
      *reply, sentence);
}

bool Client::Grant(int64_t seconds, int64_t* lease, std::string* sentence) {
  pb::LeaseGrantRequest request;
  pb::LeaseGrantResponse reply;
  request.set_ttl(seconds);
  bool granted = Try(
      [&](const Member& member, grpc::ClientContext& context) {
        return pb::Lease::NewStub(member.channel)->LeaseGrant(&context, request, &reply);
      },
      sentence);
  *lease = reply.id();
  return granted;
}

bool Client::KeepAlive(int64_t lease, bool* alive, std::string* sentence) {
  pb::LeaseKeepAliveRequest request;
  pb::LeaseKeepAliveResponse reply;
  request.set_id(lease);
  bool answered = Try(
      [&](const Member& member, grpc::ClientContext& context) {
        auto stream = pb::Lease::NewStub(member.channel)->LeaseKeepAlive(&context);
        bool read = stream->Write(request) && stream->Read(&reply);
        stream->WritesDone();
        if (!read) return stream->Finish();
        context.TryCancel();  // etcd ends the stream when its client does
        return grpc::Status::OK;
      },
      sentence);
  *alive = answered && reply.ttl() > 0;
  return answered;
}

bool Client::Revoke(int64_t lease, std::string* sentence) {
  pb::LeaseRevokeRequest request;
  pb::LeaseRevokeResponse reply;
  request.set_id(lease);
  return Try(
      [&](const Member& member, grpc::ClientContext& context) {
        return pb::Lease::NewStub(member.channel)->LeaseRevoke(&context, request, &reply);
      },
      sentence);
}

namespace {

// One watch: a stream, whose events come in a queue of its own.
class WatchStream {
 public:
  explicit WatchStream(const std::shared_ptr<grpc::Channel>& channel) {
    context_.AddMetadata("hasleader", "true");
    stream_ = pb::Watch::NewStub(channel)->AsyncWatch(&context_, &queue_, this);
  }
  ~WatchStream() {
    context_.TryCancel();
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }

  bool Create(const std::string& key, const std::string& range_end, int64_t revision,
              std::chrono::milliseconds patience) {
    if (!Await(After(patience))) return false;
    pb::WatchRequest request;
    request.mutable_create_request()->set_key(key);
    request.mutable_create_request()->set_range_end(range_end);
    request.mutable_create_request()->set_start_revision(revision);
    stream_->Write(request, this);
    if (!Await(After(patience))) return false;
    if (!Read(After(patience), {})) return false;
    return message_.created() && !message_.canceled();
  }

  // False when the stream is over, or `stop` is set.
  bool Read(gpr_timespec end, const std::function<bool()>& goes_on) {
    stream_->Read(&message_, this);
    while (true) {
      void* tag = nullptr;
      bool ok = false;
      // Who sleeps in gRPC's poller takes events from threads that spin for them
      // (server/daemon/accept_loop.h).
      const bool spins = transport::AnybodySpins();
      auto status = queue_.AsyncNext(&tag, &ok, spins ? After({}) : end);
      if (status == grpc::CompletionQueue::GOT_EVENT) return ok;
      if (status == grpc::CompletionQueue::SHUTDOWN) return false;
      if (spins) std::this_thread::sleep_for(kNap);
      if (spins && gpr_time_cmp(gpr_now(GPR_CLOCK_MONOTONIC), end) < 0) continue;
      if (!goes_on || !goes_on()) return false;
      end = After(kStopLook);
    }
  }
  const pb::WatchResponse& message() const { return message_; }

 private:
  bool Await(gpr_timespec deadline) {
    void* tag = nullptr;
    bool ok = false;
    return queue_.AsyncNext(&tag, &ok, deadline) == grpc::CompletionQueue::GOT_EVENT && ok;
  }

  grpc::CompletionQueue queue_;
  grpc::ClientContext context_;
  pb::WatchResponse message_;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<pb::WatchRequest, pb::WatchResponse>> stream_;
};

}  // namespace

void Client::Watch(const std::string& key, const std::string& range_end, int64_t revision,
                   const std::function<bool()>& goes_on,
                   const std::function<void(const pb::WatchResponse&)>& take) {
  base::AssertNoRankedLockHeld();
  const size_t place = current_.load();
  {
    WatchStream stream(members_[place].channel);
    const bool created = stream.Create(key, range_end, revision, patience_);
    while (created && goes_on() && stream.Read(After(kStopLook), goes_on)) {
      if (stream.message().canceled()) break;
      take(stream.message());
    }
  }
  // Another member may have a leader.
  size_t expected = place;
  if (goes_on()) current_.compare_exchange_strong(expected, (place + 1) % members_.size());
}

std::string EndOfPrefix(std::string prefix) {
  while (!prefix.empty()) {
    auto last = static_cast<unsigned char>(prefix.back());
    if (last != 0xff) {
      prefix.back() = static_cast<char>(last + 1);
      return prefix;
    }
    prefix.pop_back();
  }
  return std::string(1, '\0');
}

pb::Compare Absent(const std::string& key) { return CreatedAt(key, 0); }

pb::Compare Present(const std::string& key) {
  pb::Compare compare = CreatedAt(key, 0);
  compare.set_result(pb::Compare::GREATER);
  return compare;
}

pb::Compare CreatedAt(const std::string& key, int64_t revision) {
  pb::Compare compare;
  compare.set_key(key);
  compare.set_target(pb::Compare::CREATE);
  compare.set_create_revision(revision);
  return compare;
}

pb::Compare ChangedAt(const std::string& key, int64_t revision) {
  pb::Compare compare;
  compare.set_key(key);
  compare.set_target(pb::Compare::MOD);
  compare.set_mod_revision(revision);
  return compare;
}

pb::RequestOp PutOp(const std::string& key, const std::string& value, int64_t lease) {
  pb::RequestOp op;
  op.mutable_request_put()->set_key(key);
  op.mutable_request_put()->set_value(value);
  op.mutable_request_put()->set_lease(lease);
  return op;
}

pb::RequestOp DeleteOp(const std::string& key) {
  pb::RequestOp op;
  op.mutable_request_delete_range()->set_key(key);
  return op;
}

pb::RequestOp ReadOp(const std::string& key, const std::string& range_end) {
  pb::RequestOp op;
  op.mutable_request_range()->set_key(key);
  op.mutable_request_range()->set_range_end(range_end);
  return op;
}

}  // namespace longwire::etcd
