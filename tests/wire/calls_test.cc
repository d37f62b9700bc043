// Every call and reply that travels: encoding and decoding agree, and no bytes whatever make the
// decoder read outside of them (run with the address sanitizer to see that).
#include <gtest/gtest.h>

#include <memory>

#include "longwire/printer.h"
#include "tests/wire/values.h"

namespace longwire::calls {
namespace {

// A copy that ends where its memory ends, so that a sanitizer sees a read behind it.
struct Exact {
  explicit Exact(std::span<const std::byte> from)
      : size(from.size()), bytes(new std::byte[from.size()]) {
    std::copy(from.begin(), from.end(), bytes.get());
  }
  std::span<const std::byte> span() const { return {bytes.get(), size}; }
  size_t size;
  std::unique_ptr<std::byte[]> bytes;
};

template <class T>
void CheckRoundTrip(const char* name, uint32_t seed) {
  SCOPED_TRACE(name);
  Filler filler(seed);
  T value;
  VisitFields(value, filler);
  const std::vector<std::byte> bytes = Encoded(value);
  EXPECT_EQ(bytes.size(), value.EncodedBytes());
  T decoded;
  wire::Reader reader{std::span<const std::byte>(bytes)};
  ASSERT_EQ(decoded.Decode(reader), wire::WireResult::kOk);
  EXPECT_EQ(reader.remaining(), 0u);
  EXPECT_EQ(Encoded(decoded), bytes);
}

// Every prefix fails, but for those that a shorter value would have made.
template <class T>
void CheckTruncated(const char* name) {
  SCOPED_TRACE(name);
  Filler filler(7);
  T value;
  VisitFields(value, filler);
  const std::vector<std::byte> bytes = Encoded(value);
  for (size_t length = 0; length < bytes.size(); ++length) {
    const Exact exact(std::span<const std::byte>(bytes).first(length));
    T decoded;
    wire::Reader reader(exact.span());
    EXPECT_EQ(decoded.Decode(reader), wire::WireResult::kFatal) << length;
  }
}

template <class T>
void CheckCorrupted(const char* name) {
  SCOPED_TRACE(name);
  Filler filler(11);
  T value;
  VisitFields(value, filler);
  const std::vector<std::byte> bytes = Encoded(value);
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (const int flip : {0x01, 0x80, 0xff}) {
      Exact exact(bytes);
      exact.bytes[at] ^= static_cast<std::byte>(flip);
      T decoded;
      wire::Reader reader(exact.span());
      if (decoded.Decode(reader) == wire::WireResult::kOk) {
        EXPECT_LE(Encoded(decoded).size(), bytes.size()) << at;
      }
    }
  }
}

TEST(Calls, DecodeWhatWasEncoded) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    ForEachCall([seed]<class Call>(const char* name) {
      CheckRoundTrip<Call>(name, seed);
      CheckRoundTrip<typename Call::Reply>(name, seed);
    });
  }
}

TEST(Calls, RefuseBytesThatEndTooEarly) {
  ForEachCall([]<class Call>(const char* name) {
    CheckTruncated<Call>(name);
    CheckTruncated<typename Call::Reply>(name);
  });
}

TEST(Calls, SurviveCorruptedBytes) {
  ForEachCall([]<class Call>(const char* name) {
    CheckCorrupted<Call>(name);
    CheckCorrupted<typename Call::Reply>(name);
  });
}

// Counts and lengths of 2^32 - 1 with nothing behind them are refused before memory is taken.
TEST(Calls, RefuseCountsThatCannotBe) {
  const std::vector<std::byte> ones(256, std::byte{0xff});
  const Exact exact(ones);
  lwLease lease;
  wire::Reader reader(exact.span());
  EXPECT_EQ(lease.Decode(reader), wire::WireResult::kFatal);
  lwModuleLoad::Reply reply;
  wire::Reader functions(exact.span());
  EXPECT_EQ(reply.Decode(functions), wire::WireResult::kFatal);
}

TEST(Calls, AFixedBufferThatIsTooSmallOverflowsCleanly) {
  Filler filler(3);
  lwLaunch launch;
  VisitFields(launch, filler);
  for (size_t room = 0; room < launch.EncodedBytes(); ++room) {
    const std::unique_ptr<std::byte[]> memory(new std::byte[room]);
    wire::Writer writer(std::span(memory.get(), room));
    launch.Encode(writer);
    EXPECT_TRUE(writer.overflowed()) << room;
    EXPECT_LE(writer.size(), room);
  }
}

TEST(Calls, HaveTheirOwnNumbersNamesAndKinds) {
  std::vector<uint16_t> numbers;
  ForEachCall([&numbers]<class Call>(const char* name) {
    EXPECT_STREQ(CallName(Call::kId), name);
    EXPECT_NE(CallKind(Call::kId), CallKindValue::kUnsupported) << name;
    EXPECT_NE(CallKind(Call::kId), CallKindValue::kLocal) << name;
    EXPECT_EQ(CallIsPrivate(Call::kId), std::string_view(name).starts_with("lw")) << name;
    numbers.push_back(static_cast<uint16_t>(Call::kId));
  });
  EXPECT_TRUE(std::is_sorted(numbers.begin(), numbers.end()));
  EXPECT_EQ(std::adjacent_find(numbers.begin(), numbers.end()), numbers.end());
  EXPECT_STREQ(CallName(static_cast<CallId>(65535)), "?");
  EXPECT_STREQ(CallName(CallId::kNone), "?");
  EXPECT_STRNE(CallRefusal(CallId::cuMulticastCreate), "");
}

TEST(Calls, PrintAnyBytes) {
  ForEachCall([]<class Call>(const char* name) {
    Filler filler(5);
    Call call;
    VisitFields(call, filler);
    const std::vector<std::byte> bytes = Encoded(call);
    const std::string line = PrintCall(Call::kId, wire::Reader{std::span<const std::byte>(bytes)});
    EXPECT_TRUE(line.starts_with(std::string(name) + "(")) << line;
    EXPECT_EQ(line.find("…)"), std::string::npos) << line;
    for (size_t length = 0; length < bytes.size(); ++length) {
      const Exact exact(std::span<const std::byte>(bytes).first(length));
      EXPECT_NE(PrintCall(Call::kId, wire::Reader(exact.span())), line);
    }
  });
}

}  // namespace
}  // namespace longwire::calls
