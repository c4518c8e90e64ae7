#pragma once
#include "vitrail/train/crew_internal.h"
#include "vitrail/train/evaluation.h"

namespace vitrail::train {

// What each process found on its own images, put together: the same in all of them.
Evaluation gathered(const Crew& crew, Evaluation part);

}  // namespace vitrail::train
