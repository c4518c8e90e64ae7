// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/dist/communicator.h"

namespace vitrail::dist {

// Loads the MPI module and joins the run.  Throws Error when the module is not found (with the places that were
// searched and the build option), is another version's, or joins another number of processes than `launch` says.
std::shared_ptr<Communicator> join_mpi(const Launch& launch);

}  // namespace vitrail::dist
