// SPDX-License-Identifier: Apache-2.0
#pragma once
// The communicator over MPI.
#include "vitrail/dist/communicator.h"

namespace vitrail::dist {

// Loads the MPI module and initialises MPI.  Throws Error if the module is missing (naming the searched folders and the
// build option), has another version, or if MPI reports another rank or size than `launch`.
std::shared_ptr<Communicator> join_mpi(const Launch& launch);

}  // namespace vitrail::dist
