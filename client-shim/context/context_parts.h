// What other parts of the client do when a context is created and when it ends.
#pragma once

namespace longwire::shim {

// At start, before the first context is made.
void SetUpContextParts();

}  // namespace longwire::shim
