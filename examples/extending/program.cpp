// SPDX-License-Identifier: Apache-2.0
// The vitrail program with a task of its own.
//
//   example_extending_program mean-color -m models/cifar10-vit photo.jpg --grid 4 --render cells
#include "apps/vitrail/program.h"
#include "examples/extending/toy_task/mean_color.h"

int main(int argc, char** argv) {
  vitrail::tasks::add_task(extending::mean_color_task());
  return vitrail::app::run_program(argc, argv);
}
