#include "server/daemon/metrics/scrape.h"

namespace longwire::daemon {

std::vector<prometheus::MetricFamily> FamiliesOf(const Scrape& scrape) {
  Families families;
  AddDaemon(scrape, &families);
  AddProcess(scrape, &families);
  AddDevices(scrape, &families);
  AddHealth(scrape, &families);
  AddTenants(scrape, &families);
  AddLatencies(scrape, &families);
  AddDrifts(scrape, &families);
  AddIdentities(scrape, &families);
  AddOpenings(scrape, &families);
  AddMoves(scrape, &families);
  AddAdmission(scrape, &families);
  AddCalls(scrape, &families);
  AddModuleCache(scrape, &families);
  AddPool(scrape, &families);
  if (scrape.per_session) AddSessions(scrape, &families);
  return families.Take();
}

}  // namespace longwire::daemon
