// The client's side of enrolment: asks the signer once, over TLS 1.3.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "link/certificates/enrolment.h"

namespace longwire::certificates {

// How the client knows the signer, and the signer the client.
struct SignerTrust {
  // The SHA-256 of the authority's certificate, when nothing else of it is known yet. A signer of
  // another authority gets no byte of the request.
  std::optional<wire::Digest> fingerprint;
  // Else, PEM: the authority, and what the client shows.
  std::string authority;
  std::string certificate;
  std::string key;
};

// nullopt with a sentence if there is no answer. An answer may be a refusal (Answer::problem).
std::optional<Answer> AskSigner(const transport::Address& signer, const SignerTrust& trust,
                                const Request& request, std::chrono::milliseconds patience,
                                std::string* sentence);

// What is wrong with an answer that came for `key` (PEM): another authority than `fingerprint`, a
// certificate that is not for this key, not by that authority or not valid now. Empty if nothing.
std::string ProblemOf(const Answer& answer, const wire::Digest& fingerprint,
                      const std::string& key);

}  // namespace longwire::certificates
