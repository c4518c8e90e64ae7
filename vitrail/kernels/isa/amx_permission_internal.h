// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vitrail::kernels {

// Whether the processor has Intel AMX with int8 and bf16.
bool processor_has_amx();

// Asks the system for the use of AMX's tile registers, once for the process, and returns whether it is granted.  Linux
// keeps these registers for a thread only on request, since version 5.16.
bool may_use_amx_tiles();

}  // namespace vitrail::kernels
