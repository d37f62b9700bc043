// longwire-web: a page that shows what longwired of this host does.
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <future>

#include "base/reason.h"
#include "base/start_thread.h"
#include "link/transport/log.h"
#include "server/warden/service_manager.h"
#include "web/http_server.h"
#include "web/options.h"
#include "wire/descriptors.h"
#include "wire/switches.h"

namespace longwire::web {
namespace {

using transport::Log;
using transport::LogLevel;

constexpr std::chrono::seconds kEndPatience{3};

int Fail(const std::string& sentence) {
  std::fprintf(stderr, "longwire-web: %s\n", sentence.c_str());
  return 1;
}

// Before there are threads, so that they are blocked in every one.
sigset_t BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (int signal : {SIGTERM, SIGINT}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

// In lower case, as the server compares them.
std::vector<std::string> HostsOf(const Options& options, const transport::TlsMaterial* tls) {
  std::vector<std::string> hosts = options.hosts;
  hosts.push_back(options.listen.host);
  if (transport::IsLoopback(options.listen)) {
    hosts.insert(hosts.end(), {"localhost", "127.0.0.1", "::1"});
  }
  if (tls != nullptr) hosts.insert(hosts.end(), tls->own.names.begin(), tls->own.names.end());
  for (std::string& host : hosts) {
    for (char& c : host) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  }
  return hosts;
}

// The sampler may wait for a daemon that does not answer.
void End(HttpServer& server, std::thread& serving, Sampler& sampler) {
  auto ended = std::async(std::launch::async, [&] {
    server.Stop();
    serving.join();
    sampler.Stop();
  });
  if (ended.wait_for(kEndPatience) != std::future_status::ready) _exit(0);
}

int Run(const Options& options, const sigset_t& signals) {
  std::string sentence;
  std::optional<transport::TlsMaterial> tls;
  if (!options.tls.none()) {
    tls = transport::LoadTls(options.tls, transport::TlsRole::kServer, &sentence);
    if (!tls) return Fail(sentence);
  }
  const transport::TlsMaterial* material = tls ? &*tls : nullptr;
  const DaemonClient daemon(options.control);
  Sampler sampler(daemon);
  Viewers viewers(daemon);
  HttpServer server(sampler, viewers);
  if (!server.Open(options.listen, material, HostsOf(options, material), &sentence) ||
      !sampler.Start(&sentence)) {
    return Fail(sentence);
  }
  std::thread serving;
  if (!base::StartThread(&serving, [&] { server.Serve(); })) {
    return Fail(base::ReasonOfNoThread(errno));
  }
  const transport::Address at{options.listen.host, static_cast<uint16_t>(server.port())};
  service::Manager::Ours().Notify("READY=1");
  Log(LogLevel::kInfo,
      std::string("ready at ") + (tls ? "https" : "http") + "://" + at.Text() + "/");
  int signal = 0;
  sigwait(&signals, &signal);
  Log(LogLevel::kInfo, "ending on signal " + std::to_string(signal));
  End(server, serving, sampler);
  return 0;
}

int Main(int count, char** arguments) {
  wire::OpenStandardDescriptors();
  base::SayWhyTerminated("longwire-web");
  ::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL
  // An arena for each thread would keep for ever what one answer took.
  mallopt(M_ARENA_MAX, 2);
  for (const std::string& sentence : wire::UnknownSwitches()) {
    std::fprintf(stderr, "longwire-web: %s\n", sentence.c_str());
  }
  Refusal refusal;
  const auto options = ParseCommandLine(count, arguments, &refusal);
  if (!options) {
    std::fputs(refusal.text.c_str(), refusal.status == 0 ? stdout : stderr);
    return refusal.status;
  }
  const sigset_t signals = BlockSignals();
  service::Manager::Ours();  // while there is one thread only: it changes the environment
  return Run(*options, signals);
}

}  // namespace
}  // namespace longwire::web

int main(int count, char** arguments) { return longwire::web::Main(count, arguments); }
