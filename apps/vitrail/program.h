// SPDX-License-Identifier: Apache-2.0
#pragma once
// The vitrail program.
namespace vitrail::app {

// What main() does.  Returns the exit status.
int run_program(int argc, char** argv);

}  // namespace vitrail::app
