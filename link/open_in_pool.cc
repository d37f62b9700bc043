// A session that is opened where a pool of servers has placed it.
#include "link/link_session.h"
#include "link/pool_place.h"
#include "link/transport/log.h"

namespace longwire::link {
namespace {

using transport::Log;
using transport::LogLevel;

constexpr int kPlaces = 3;  // that are tried

}  // namespace

// In a pool the server that was asked may have found a place elsewhere: opens the session there. If
// that does not go, it asks for another place. At the end asked->opened is the last answer, or the
// status, or a sentence, says why there is none.
grpc::Status LinkSession::GoToPlace(transport::OpenSessionRequest request, Contender& contender,
                                    Asked* asked, std::string* sentence) {
  grpc::Status status;
  // One of several places: the program itself asks for others.
  if (request.place().placed()) return status;
  for (int attempt = 1; status.ok(); ++attempt) {
    asked->places = PlacesOf(request, asked->opened);
    if (!asked->places.places.empty()) return status;
    const transport::Place place = asked->opened.place();
    if (!place.address().empty()) {
      auto address = transport::ParseAddress(place.address(), sentence);
      if (!address) return {grpc::StatusCode::INTERNAL, *sentence};
      servers_.GiveBack(asked->channel);
      request.mutable_place()->set_placed(true);
      status = CallOpen(*address, request, contender, asked, sentence);
      const bool elsewhere = status.error_code() == grpc::StatusCode::UNAVAILABLE ||
                             (status.ok() && asked->opened.place_again());
      if (!elsewhere || attempt == kPlaces) return status;
      request.mutable_place()->add_avoid(place.host());
      Log(LogLevel::kInfo, "the session was placed at " + place.host() + ", " + place.address() +
                               ", which did not open it; asking for another place");
    } else if (!asked->opened.place_again() || attempt == kPlaces) {
      return status;
    }
    AskForAnotherPlace(attempt, &request);
    status = CallOpen(contender.address(), request, contender, asked, sentence);
  }
  return status;
}

}  // namespace longwire::link
