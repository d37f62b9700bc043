#include "link/certificates/signing_request.h"

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/x509.h>

#include <memory>
#include <string_view>

namespace longwire::certificates {
namespace {

using transport::KeyPointer;
using RequestPointer = std::unique_ptr<X509_REQ, decltype(&X509_REQ_free)>;

constexpr std::string_view kCurve = "prime256v1";  // OpenSSL's name of P-256
constexpr size_t kPointBytes = 65;                 // uncompressed, which is the longest form

// A key of the curve's own parameters and the same point; null if the point is not on it.
KeyPointer KeyOfPoint(EVP_PKEY* key) {
  char curve[64] = "";
  size_t length = 0;
  unsigned char point[kPointBytes];
  if (EVP_PKEY_get_group_name(key, curve, sizeof(curve), &length) != 1 || kCurve != curve ||
      EVP_PKEY_get_octet_string_param(key, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof(point),
                                      &length) != 1) {
    return nullptr;
  }
  OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, curve, 0),
      OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, point, length),
      OSSL_PARAM_construct_end()};
  std::unique_ptr<EVP_PKEY_CTX, decltype(&EVP_PKEY_CTX_free)> context(
      EVP_PKEY_CTX_new_from_name(nullptr, "EC", nullptr), EVP_PKEY_CTX_free);
  EVP_PKEY* made = nullptr;
  if (context == nullptr || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &made, EVP_PKEY_PUBLIC_KEY, parameters) != 1) {
    return nullptr;
  }
  return KeyPointer(made);
}

}  // namespace

std::optional<std::string> MakeSigningRequest(const std::string& key, std::string* sentence) {
  KeyPointer own = transport::ParseKey(key);
  RequestPointer request(X509_REQ_new(), X509_REQ_free);
  unsigned char* der = nullptr;
  int length = -1;
  if (own != nullptr && request != nullptr && X509_REQ_set_version(request.get(), 0) == 1 &&
      X509_REQ_set_pubkey(request.get(), own.get()) == 1 &&
      X509_REQ_sign(request.get(), own.get(), EVP_sha256()) > 0) {
    length = i2d_X509_REQ(request.get(), &der);
  }
  ERR_clear_error();
  if (length <= 0) {
    *sentence = "no certificate request can be made with this private key";
    return std::nullopt;
  }
  std::string text(reinterpret_cast<char*>(der), static_cast<size_t>(length));
  OPENSSL_free(der);
  return text;
}

KeyPointer KeyOfRequest(std::span<const std::byte> bytes, std::string* sentence) {
  const auto* start = reinterpret_cast<const unsigned char*>(bytes.data());
  const unsigned char* at = start;
  RequestPointer request(d2i_X509_REQ(nullptr, &at, static_cast<long>(bytes.size())),
                         X509_REQ_free);
  KeyPointer key;
  EVP_PKEY* claimed = request == nullptr ? nullptr : X509_REQ_get0_pubkey(request.get());
  if (request == nullptr || at != start + bytes.size()) {
    *sentence = "the certificate request is not one in DER (PKCS#10)";
  } else if (claimed != nullptr) {
    key = KeyOfPoint(claimed);
  }
  if (key == nullptr && sentence->empty()) {
    *sentence = "the certificate request is not for an ECDSA key on P-256";
  }
  if (key != nullptr && X509_REQ_verify(request.get(), key.get()) != 1) {
    *sentence = "the certificate request was not signed by its own key";
    key.reset();
  }
  ERR_clear_error();
  return key;
}

}  // namespace longwire::certificates
