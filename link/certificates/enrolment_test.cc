// Invitations, requests and answers as they travel; requests to certify a key.
#include "link/certificates/enrolment.h"

#include <gmock/gmock.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>

#include "link/certificates/authority.h"
#include "link/certificates/signing_request.h"

namespace longwire::certificates {
namespace {

using testing::HasSubstr;

std::span<const std::byte> Bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

wire::Digest Filled(int value) {
  wire::Digest digest;
  digest.fill(static_cast<std::byte>(value));
  return digest;
}

TEST(InvitationTest, ALineIsReadAsItWasWritten) {
  for (const char* host : {"gpu1.example.org", "192.0.2.7", "::1"}) {
    Invitation invitation{{host, 7413}, Filled(0xab), Filled(0x05)};
    std::string sentence;
    auto read = ParseInvitation(invitation.Line(), &sentence);
    ASSERT_TRUE(read) << sentence;
    EXPECT_EQ(read->signer.host, host);
    EXPECT_EQ(read->signer.port, 7413);
    EXPECT_EQ(read->authority, invitation.authority);
    EXPECT_EQ(read->secret, invitation.secret);
    EXPECT_EQ(invitation.Line().find_first_of(" \t\n'\"$`\\#&;|<>()*?!~"), std::string::npos);
  }
}

TEST(InvitationTest, WhatIsNoLineIsRefusedWithASentence) {
  std::string line = Invitation{{"gpu", 7413}, Filled(1), Filled(2)}.Line();
  for (const std::string& bad :
       {std::string(), std::string("gpu:7413"), line.substr(0, line.size() - 1), line + "0",
        line + "/", "/" + line, line.substr(0, 5), std::string(100'000, '/'),
        "gpu:70000" + line.substr(line.find('/')), "G" + line.substr(9), "g\npu" + line.substr(3),
        std::string(254, 'h') + line.substr(3)}) {
    std::string sentence;
    EXPECT_FALSE(ParseInvitation(bad, &sentence)) << bad.substr(0, 200);
    EXPECT_NE(sentence, "");
  }
}

TEST(EnrolmentTest, MessagesAreReadAsTheyWereWritten) {
  Request request;
  request.secret = Filled(7);
  request.signing_request = "request";
  Request read;
  ASSERT_TRUE(Unpack(Bytes(Pack(request)), &read));
  EXPECT_EQ(read.secret, request.secret);
  EXPECT_EQ(read.signing_request, "request");
  request.kind = Request::Kind::kRenew;
  ASSERT_TRUE(Unpack(Bytes(Pack(request)), &read));
  EXPECT_EQ(read.kind, Request::Kind::kRenew);
  Answer answer{"", "certificate", "authority", "gpu:7411"}, got;
  ASSERT_TRUE(Unpack(Bytes(Pack(answer)), &got));
  EXPECT_EQ(got.authority, "authority");
  EXPECT_EQ(got.server, "gpu:7411");
}

TEST(EnrolmentTest, WhatIsCutOffOrTooLongIsNoMessage) {
  Request request;
  request.signing_request = "request";
  std::string whole = Pack(request);
  Request read;
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(Unpack(Bytes(whole).first(length), &read)) << length;
  }
  EXPECT_FALSE(Unpack(Bytes(whole + "x"), &read));
  whole[0] = 2;  // another version
  EXPECT_FALSE(Unpack(Bytes(whole), &read));
}

TEST(FrameReaderTest, AFrameComesInAnyPieces) {
  std::string frame = Frame("four");
  for (size_t piece = 1; piece <= frame.size(); ++piece) {
    FrameReader reader(4);
    auto state = FrameReader::State::kPartial;
    for (size_t at = 0; at < frame.size(); at += piece) {
      EXPECT_EQ(state, FrameReader::State::kPartial);
      std::string part = frame.substr(at, piece);
      state = reader.Add(Bytes(part));
    }
    EXPECT_EQ(state, FrameReader::State::kWhole);
    EXPECT_EQ(reader.message().size(), 4u);
  }
}

TEST(FrameReaderTest, AFrameHasItsBounds) {
  for (const std::string& bad : {Frame("fives"), Frame(""), Frame("four") + "x",
                                 std::string("\xff\xff\xff\xff"), std::string(100, 'x')}) {
    FrameReader reader(4);
    EXPECT_EQ(reader.Add(Bytes(bad)), FrameReader::State::kBroken) << bad;
  }
}

TEST(SigningRequestTest, ItHasTheKeyThatSignedIt) {
  std::string sentence;
  std::string key = NewKey(&sentence);
  auto request = MakeSigningRequest(key, &sentence);
  ASSERT_TRUE(request) << sentence;
  transport::KeyPointer found = KeyOfRequest(Bytes(*request), &sentence);
  ASSERT_NE(found, nullptr) << sentence;
  EXPECT_EQ(EVP_PKEY_eq(found.get(), transport::ParseKey(key).get()), 1);
}

TEST(SigningRequestTest, OtherBytesAreRefusedWithASentence) {
  std::string sentence;
  std::string good = *MakeSigningRequest(NewKey(&sentence), &sentence);
  std::string other_signature = good;
  other_signature.back() = static_cast<char>(other_signature.back() ^ 1);
  for (const std::string& bad : {std::string(), std::string("garbage"), good + "x",
                                 good.substr(0, good.size() / 2), other_signature}) {
    sentence.clear();
    EXPECT_EQ(KeyOfRequest(Bytes(bad), &sentence), nullptr);
    EXPECT_THAT(sentence, HasSubstr("certificate request"));
  }
}

TEST(SigningRequestTest, OnlyKeysOnP256AreTaken) {
  transport::KeyPointer other(EVP_EC_gen("P-384"));
  std::unique_ptr<X509_REQ, decltype(&X509_REQ_free)> request(X509_REQ_new(), X509_REQ_free);
  X509_REQ_set_pubkey(request.get(), other.get());
  X509_REQ_sign(request.get(), other.get(), EVP_sha256());
  unsigned char* der = nullptr;
  int length = i2d_X509_REQ(request.get(), &der);
  std::string bytes(reinterpret_cast<char*>(der), static_cast<size_t>(length));
  OPENSSL_free(der);
  std::string sentence;
  EXPECT_EQ(KeyOfRequest(Bytes(bytes), &sentence), nullptr);
  EXPECT_THAT(sentence, HasSubstr("P-256"));
}

}  // namespace
}  // namespace longwire::certificates
