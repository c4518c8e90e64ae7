// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/program.h"

int main(int argc, char** argv) { return vitrail::app::run_program(argc, argv); }
