#include "link/certificates/tls_acceptor.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "base/poll_set.h"
#include "link/certificates/tcp_listener.h"

namespace longwire::certificates {
namespace {

using Clock = TlsExchange::Clock;

constexpr std::chrono::milliseconds kForEver{-1};
constexpr useconds_t kPauseMicroseconds = 10'000;  // most likely out of memory

// Of an IPv6 address the /64: one host has all of it.
std::string HostOf(const transport::Address& from) {
  in6_addr v6{};
  if (inet_pton(AF_INET6, from.host.c_str(), &v6) != 1) return from.host;
  char text[INET6_ADDRSTRLEN] = "";
  std::fill(v6.s6_addr + 8, v6.s6_addr + 16, 0);
  inet_ntop(AF_INET6, &v6, text, sizeof(text));
  return std::string(text) + "/64";
}

}  // namespace

void TlsAcceptor::Add(std::vector<wire::Descriptor> listeners) {
  std::ranges::move(listeners, std::back_inserter(listeners_));
}

void TlsAcceptor::Accept(int listener) {
  sockaddr_storage storage{};
  wire::Descriptor socket = transport::AcceptTcp(listener, &storage);
  if (!socket.valid()) return;
  const transport::Address from = transport::AddressOf(storage);
  std::string host = HostOf(from);
  auto of_host = std::ranges::count(open_, host, &Open::host);
  if (static_cast<size_t>(of_host) >= limits_.of_host) return;
  auto exchange = make_(std::move(socket), from, host);
  open_.push_back({std::move(host), std::move(exchange)});
}

bool TlsAcceptor::RunOnce(int other) {
  base::PollSet set;
  base::PollSet::Entry others = set.Add(other);
  std::vector<base::PollSet::Entry> listening, entries;
  if (open_.size() < limits_.connections) {
    for (const wire::Descriptor& one : listeners_) listening.push_back(set.Add(one.get()));
  }
  auto wait = kForEver;
  const auto start = Clock::now();
  for (const auto& [host, open] : open_) {
    entries.push_back(set.Add(open->socket(), open->events()));
    auto left = std::max(std::chrono::ceil<std::chrono::milliseconds>(open->deadline() - start),
                         std::chrono::milliseconds(0));
    wait = wait == kForEver ? left : std::min(wait, left);
  }
  if (set.Wait(wait) < 0) {
    usleep(kPauseMicroseconds);
    return false;
  }
  const auto now = Clock::now();
  auto entry = entries.begin();
  open_.remove_if([&](const Open& open) {
    bool goes_on = !set.Ready(*entry++) || open.exchange->GoOn();
    return !goes_on || now >= open.exchange->deadline();
  });
  for (size_t i = 0; i < listening.size(); ++i) {
    if (set.Ready(listening[i])) Accept(listeners_[i].get());
  }
  return set.Ready(others);
}

}  // namespace longwire::certificates
