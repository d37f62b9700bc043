#include "cli/top/fetcher.h"

#include <cerrno>

#include "base/reason.h"
#include "base/start_thread.h"
#include "cli/operator/operator.h"
#include "cli/text.h"

namespace longwire::cli::top {
namespace {

using std::chrono::steady_clock;

constexpr size_t kRequestLimit = 16;  // that wait while the server does not answer

std::string SentenceOf(const transport::AdminReply& reply) {
  std::string all = reply.done() ? "" : "not done";
  for (const std::string& sentence : reply.sentences()) {
    all += (all.empty() ? "" : ": ") + sentence;
  }
  return Printable(all);
}

}  // namespace

// A new one after each failure: the server may be another process then.
class Asker {
 public:
  explicit Asker(const ServerOptions& options) : options_(options) { Renew(); }
  Operator& Get() { return *operator_; }
  void Renew() { operator_ = std::make_unique<Operator>(options_, Operator::Prefers::kLocal); }

 private:
  const ServerOptions& options_;
  std::unique_ptr<Operator> operator_;
};

Fetcher::Fetcher(ServerOptions options, std::chrono::duration<double> interval,
                 transport::InspectRequest also)
    : options_(std::move(options)), interval_(interval), also_(std::move(also)) {}

Fetcher::~Fetcher() {
  {
    base::MutexLock lock(mutex_);
    ending_ = true;
  }
  changed_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

bool Fetcher::Fetch(std::string* sentence) {
  if (asker_ == nullptr) asker_ = std::make_unique<Asker>(options_);
  auto reply = std::make_shared<transport::InspectReply>();
  const bool answered = asker_->Get().Inspect(also_, reply.get(), sentence);
  const std::string server = asker_->Get().name();
  if (!answered) asker_->Renew();
  base::MutexLock lock(mutex_);
  ++state_.number;
  state_.problem = answered ? "" : Printable(*sentence);
  if (!answered) return false;
  state_.server = server;
  state_.before = std::exchange(state_.now, std::move(reply));
  return true;
}

bool Fetcher::FetchOnce(std::string* sentence) { return Fetch(sentence); }

bool Fetcher::Start(std::string* sentence) {
  {
    base::MutexLock lock(mutex_);
    ended_ = false;
  }
  if (base::StartThread(&thread_, [this] { Loop(); })) return true;
  *sentence = base::ReasonOfNoThread(errno);
  return false;
}

void Fetcher::Administer(const transport::AdminRequest& request) {
  transport::AdminReply reply;
  std::string sentence;
  const bool answered = asker_->Get().Administer(request, &reply, &sentence);
  if (!answered) asker_->Renew();
  base::MutexLock lock(mutex_);
  ++state_.number;
  ++state_.answers;
  state_.said = answered ? SentenceOf(reply) : "not done: " + Printable(sentence);
}

void Fetcher::Loop() {
  const auto interval = std::chrono::duration_cast<steady_clock::duration>(interval_);
  auto due = steady_clock::now() + interval;
  base::MutexLock lock(mutex_);
  while (!ending_) {
    if (!requests_.empty()) {
      const transport::AdminRequest request = std::move(requests_.front());
      requests_.pop_front();
      lock.Unlock();
      Administer(request);
      due = steady_clock::now();
      lock.Lock();
    } else if (steady_clock::now() < due) {
      changed_.WaitUntil(lock, due);
    } else {
      due = steady_clock::now() + interval;
      lock.Unlock();
      std::string sentence;
      (void)Fetch(&sentence);  // it is in the state
      lock.Lock();
    }
  }
  ended_ = true;
  changed_.NotifyAll();
}

Fetcher::State Fetcher::Get() {
  base::MutexLock lock(mutex_);
  return state_;
}

void Fetcher::Ask(transport::AdminRequest request) {
  {
    base::MutexLock lock(mutex_);
    if (requests_.size() < kRequestLimit) requests_.push_back(std::move(request));
  }
  changed_.NotifyAll();
}

bool Fetcher::Stop(std::chrono::milliseconds patience) {
  const auto end = steady_clock::now() + patience;
  base::MutexLock lock(mutex_);
  ending_ = true;
  changed_.NotifyAll();
  while (!ended_ && changed_.WaitUntil(lock, end)) {
  }
  return ended_;
}

}  // namespace longwire::cli::top
