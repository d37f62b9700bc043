#include "link/pool_place.h"

#include <openssl/hmac.h>
#include <sys/random.h>

#include <array>
#include <sstream>
#include <string_view>

#include "wire/limits.h"
#include "wire/open.h"

namespace longwire::link {
namespace {

constexpr size_t kNumberBytes = 16;
constexpr size_t kSecretBytes = 32;
constexpr std::string_view kRequestVariable = "LONGWIRE_REQUEST=";

std::string RandomBytes(size_t count) {
  std::string bytes(count, '\0');
  // It waits for the kernel's first randomness, and does not fail for so few.
  if (getrandom(bytes.data(), count, 0) != static_cast<ssize_t>(count)) bytes.clear();
  return bytes;
}

std::string Hexadecimal(const std::string& bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (unsigned char byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

// What the program says to its link.
struct Said {
  std::string number;         // its own; empty: it does not wait
  std::string place, ticket;  // that it has
  std::vector<std::string> avoid;
  bool over_hosts = false;
};

std::vector<std::string> Split(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream list(text);
  for (std::string word; std::getline(list, word, ',');) words.push_back(word);
  return words;
}

Said SaidIn(std::span<const std::byte> opening) {
  Said said;
  wire::OpenRequest program;
  wire::Reader reader(opening);
  if (program.Decode(reader) != wire::WireResult::kOk) return said;
  const auto value = [](const std::string& variable, std::string_view name) {
    return variable.starts_with(name) ? variable.substr(name.size()) : std::string();
  };
  for (const std::string& variable : program.environment) {
    if (auto text = value(variable, kRequestVariable); !text.empty()) said.number = text;
    if (auto text = value(variable, wire::kAvoidVariable); !text.empty()) said.avoid = Split(text);
    (void)wire::ReadPlace(value(variable, wire::kPlaceVariable), &said.place, &said.ticket);
    said.over_hosts |= variable == wire::kOverHosts;
  }
  return said;
}

// By this process's secret: the same for the same number, and nobody else can say it.
std::string TicketFor(const std::string& number) {
  static const std::string secret = RandomBytes(kSecretBytes);
  std::array<unsigned char, EVP_MAX_MD_SIZE> ticket{};
  unsigned size = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(number.data()), number.size(), ticket.data(), &size);
  return {reinterpret_cast<const char*>(ticket.data()), secret.empty() ? 0 : size};
}

// By its number: one for each place that it may get.
void SetTickets(transport::PlaceRequest* place) {
  place->set_ticket(TicketFor(place->number()));
  for (int i = 0; i < place->further_tickets_size(); ++i) {
    place->set_further_tickets(i, TicketFor(place->number() + "/" + std::to_string(i + 1)));
  }
}

}  // namespace

void AskForPlace(std::span<const std::byte> opening, transport::OpenSessionRequest* request) {
  const Said said = SaidIn(opening);
  transport::PlaceRequest& place = *request->mutable_place();
  if (!said.ticket.empty()) {
    place.set_number(said.place);
    place.set_ticket(said.ticket);
    place.set_placed(true);
    return;
  }
  place.set_number(said.number.empty() ? Hexadecimal(RandomBytes(kNumberBytes)) : said.number);
  for (const std::string& host : said.avoid) place.add_avoid(host);
  for (size_t i = 1; said.over_hosts && i < wire::kMaxServers; ++i) place.add_further_tickets();
  SetTickets(&place);
}

void AskForAnotherPlace(int attempt, transport::OpenSessionRequest* request) {
  transport::PlaceRequest& place = *request->mutable_place();
  std::string number = place.number();
  number = number.substr(0, number.find('-')) + "-" + std::to_string(attempt);
  place.set_number(number);
  place.set_placed(false);
  SetTickets(&place);
}

wire::PlaceList PlacesOf(const transport::OpenSessionRequest& request,
                         const transport::OpenSessionReply& reply) {
  wire::PlaceList places;
  const int count = reply.places_size();
  if (count < 2 || count > request.place().further_tickets_size() + 1) return places;
  for (int i = 0; i < count; ++i) {
    const transport::Place& place = reply.places(i);
    places.places.push_back(
        {place.host(), place.address(), place.number(),
         i == 0 ? request.place().ticket() : request.place().further_tickets(i - 1),
         place.devices()});
  }
  return places;
}

}  // namespace longwire::link
