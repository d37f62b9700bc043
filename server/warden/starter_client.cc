#include "server/warden/starter_client.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/poll_set.h"

namespace longwire::warden {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPatience{5'000};  // for one of its answers
constexpr int kSignalled = 128;           // exit code of a worker that died of a signal, plus that

wire::Descriptor SettingsOf(const Program& program) {
  std::string text;
  for (const auto* list : {&program.arguments, &program.environment}) {
    for (const std::string& entry : *list) text.append(entry).push_back('\0');
    text.push_back('\0');
  }
  wire::Descriptor file(memfd_create("settings", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  constexpr int kSeals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  bool good = file.valid() &&
              write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
              fcntl(file.get(), F_ADD_SEALS, kSeals) == 0;
  if (!good) file.Reset();
  return file;
}

}  // namespace

bool StarterClient::Start(const Program& program, std::string* sentence) {
  wire::Descriptor end;
  *sentence = "out of memory or descriptors";
  if (!wire::LocalPair(&socket_, &end)) return false;
  Program starter = program;
  starter.descriptors = {end.get()};
  starter.arguments.insert(starter.arguments.end(), {"--socket", "3"});
  process_ = Spawn(starter);
  if (process_.pid == 0) socket_.Reset();
  end.Reset();
  return process_.pid != 0 && AwaitReady(sentence);
}

bool StarterClient::Connect(const std::string& socket, std::string* sentence) {
  socket_ = wire::ConnectLocal(socket);
  *sentence = "longwire-starter does not answer at " + socket + ": " + std::strerror(errno);
  return socket_.valid() && AwaitReady(sentence);
}

bool StarterClient::AwaitReady(std::string* sentence) {
  starter::Answer answer;
  wire::Descriptor none;
  bool ready = Receive(kPatience, &answer, &none) && answer.what == starter::What::kReady;
  walls_ = ready ? answer.walls : 0;
  if (ready) return true;
  *sentence = "longwire-starter does not start";
  socket_.Reset();
  return false;
}

bool StarterClient::Send(const starter::Request& request, std::span<const int> descriptors) {
  return socket_.valid() &&
         wire::SendMessage(socket_.get(), std::as_bytes(std::span(&request, 1)), descriptors);
}

bool StarterClient::Receive(milliseconds patience, starter::Answer* answer,
                            wire::Descriptor* passed) {
  bool closed = false;
  auto message = wire::ReceiveMessage(socket_.get(), patience, &closed);
  bool whole = message && message->bytes.size() == sizeof(*answer);
  if (whole) std::memcpy(answer, message->bytes.data(), sizeof(*answer));
  whole = whole && answer->mark == starter::kMark;
  if (whole && message->descriptors.size() == 1) *passed = std::move(message->descriptors[0]);
  if (closed || (message && !whole)) socket_.Reset();
  return whole;
}

// As the first process of its namespace a worker cannot be killed by a signal of its own
// (server/worker/support/crash_report.cc).
void StarterClient::TakeEnd(const starter::Answer& answer) {
  const bool signalled = answer.exit_code > kSignalled && answer.signal == 0;
  ends_.push_back({answer.pid, signalled ? -1 : answer.exit_code,
                   signalled ? answer.exit_code - kSignalled : answer.signal});
}

Process StarterClient::StartWorker(Program program) {
  Process process;
  wire::Descriptor settings = SettingsOf(program);
  if (!settings.valid()) return process;
  program.descriptors.insert(program.descriptors.begin(), {program.error, settings.get()});
  starter::Request request;
  request.own_network = program.own_network ? 1 : 0;
  if (!Send(request, program.descriptors)) return process;
  starter::Answer answer;
  while (Receive(kPatience, &answer, &process.pidfd)) {
    if (answer.what == starter::What::kEnded) {
      TakeEnd(answer);
    } else if (answer.what == starter::What::kStarted) {
      process.pid = process.pidfd.valid() ? answer.pid : 0;
      return process;
    }
  }
  socket_.Reset();  // it does not keep to the protocol; its workers end with it
  return process;
}

void StarterClient::Kill(pid_t worker) {
  starter::Request request;
  request.what = starter::What::kKill;
  request.pid = worker;
  (void)Send(request);
}

void StarterClient::Assign(pid_t worker, const std::string& tenant, bool latency_critical) {
  starter::Request request;
  request.what = starter::What::kAssign;
  request.pid = worker;
  request.latency_critical = latency_critical ? 1 : 0;
  if (tenant.size() < sizeof(request.tenant)) {
    std::memcpy(request.tenant, tenant.data(), tenant.size());
  }
  (void)Send(request);
}

std::vector<StarterClient::End> StarterClient::TakeEnds() {
  starter::Answer answer;
  wire::Descriptor none;
  while (running() && Receive(milliseconds(0), &answer, &none)) {
    if (answer.what == starter::What::kEnded) TakeEnd(answer);
  }
  if (!running() && process_.pid != 0) {
    // Its workers end with it, which is known only when it is gone.
    int exit_code = 0, signal = 0;
    warden::Kill(process_);
    base::PollOne(process_.pidfd.get(), POLLIN, kPatience);
    Reap(process_, &exit_code, &signal);
    process_ = {};
  }
  return std::exchange(ends_, {});
}

}  // namespace longwire::warden
