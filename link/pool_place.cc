#include "link/pool_place.h"

#include <openssl/hmac.h>
#include <sys/random.h>

#include <array>
#include <string_view>

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

// The program's own number; empty: it does not wait.
std::string NumberIn(std::span<const std::byte> opening) {
  wire::OpenRequest program;
  wire::Reader reader(opening);
  if (program.Decode(reader) != wire::WireResult::kOk) return {};
  for (const std::string& variable : program.environment) {
    if (variable.starts_with(kRequestVariable)) return variable.substr(kRequestVariable.size());
  }
  return {};
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

}  // namespace

void AskForPlace(std::span<const std::byte> opening, transport::OpenSessionRequest* request) {
  std::string number = NumberIn(opening);
  if (number.empty()) number = Hexadecimal(RandomBytes(kNumberBytes));
  request->mutable_place()->set_number(number);
  request->mutable_place()->set_ticket(TicketFor(number));
}

void AskForAnotherPlace(int attempt, transport::OpenSessionRequest* request) {
  transport::PlaceRequest& place = *request->mutable_place();
  std::string number = place.number();
  number = number.substr(0, number.find('-')) + "-" + std::to_string(attempt);
  place.set_number(number);
  place.set_ticket(TicketFor(number));
  place.set_placed(false);
}

}  // namespace longwire::link
