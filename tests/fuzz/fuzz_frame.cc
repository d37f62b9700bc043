// The bodies of control frames that link and daemon exchange: the first byte picks which.
#include <cstdlib>

#include "link/transport/frame.h"

namespace {

using namespace longwire::transport;

template <class Body>
void RoundTrip(std::span<const std::byte> bytes,
               WireResult (*decode)(std::span<const std::byte>, Body*),
               std::string (*encode)(const Body&)) {
  Body body;
  if (decode(bytes, &body) != WireResult::kOk) return;
  // More may follow what this version knows; what it knows must come out as it went in.
  std::string again = encode(body);
  if (again.size() > bytes.size() || again.size() > kMaxControlBytes) std::abort();
  auto out = std::as_bytes(std::span(again));
  if (!std::equal(out.begin(), out.end(), bytes.begin())) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const auto bytes = std::as_bytes(std::span(data + 1, size - 1));
  switch (data[0] % 4) {
    case 0:
      RoundTrip<Attach>(bytes, DecodeAttach, EncodeAttach);
      break;
    case 1:
      RoundTrip<Attached>(bytes, DecodeAttached, EncodeAttached);
      break;
    case 2:
      RoundTrip<Terms>(bytes, DecodeTerms, EncodeTerms);
      break;
    default:
      RoundTrip<Closed>(bytes, DecodeClosed, EncodeClosed);
      break;
  }
  return 0;
}
