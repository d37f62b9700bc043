// What other parts of the client do for a context's sake when it is made and when it ends.
#pragma once

namespace longwire::shim {

// At start, before the first context is made.
void SetUpContextParts();

}  // namespace longwire::shim
