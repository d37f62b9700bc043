// What strangers send to the signer and a signer to its clients: frames, messages, certificate
// requests, lines of invitations. The first byte picks which.
#include <cstdlib>

#include "link/certificates/enrolment.h"
#include "link/certificates/signing_request.h"

namespace {

using namespace longwire::certificates;

template <class Message>
void RoundTrip(std::span<const std::byte> bytes) {
  Message message;
  if (!Unpack(bytes, &message)) return;
  if (Pack(message).size() != bytes.size()) std::abort();
}

// In pieces of any size, as TLS hands them over.
void ReadFrame(std::span<const std::byte> bytes) {
  FrameReader reader(kMaxRequestBytes);
  size_t piece = bytes.empty() ? 1 : std::to_integer<size_t>(bytes[0]) + 1;
  while (!bytes.empty()) {
    size_t count = std::min(piece, bytes.size());
    auto state = reader.Add(bytes.first(count));
    bytes = bytes.subspan(count);
    if (state == FrameReader::State::kWhole) RoundTrip<Request>(reader.message());
    if (state != FrameReader::State::kPartial) return;
  }
}

void ReadLine(std::span<const std::byte> bytes) {
  std::string sentence;
  std::string line(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  auto invitation = ParseInvitation(line, &sentence);
  if (!invitation) return;
  auto again = ParseInvitation(invitation->Line(), &sentence);
  if (!again || again->secret != invitation->secret) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const auto bytes = std::as_bytes(std::span(data + 1, size - 1));
  std::string sentence;
  switch (data[0] % 6) {
    case 0:
      ReadFrame(bytes);
      break;
    case 1:
      RoundTrip<Request>(bytes);
      break;
    case 2:
      RoundTrip<Answer>(bytes);
      break;
    case 3:
      RoundTrip<InviteRequest>(bytes);
      break;
    case 4:
      if (KeyOfRequest(bytes, &sentence) == nullptr && sentence.empty()) std::abort();
      break;
    default:
      ReadLine(bytes);
  }
  return 0;
}
