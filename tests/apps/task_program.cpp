// SPDX-License-Identifier: Apache-2.0
// The vitrail program with tasks for the command that all tasks have: that of an example, which computes on an image,
// and the library's under other names, whose images run by passes.
#include <algorithm>

#include "apps/vitrail/program.h"
#include "examples/extending/toy_task/mean_color.h"

int main(int argc, char** argv) {
  vitrail::tasks::add_task(extending::mean_color_task());
  for (const char* name : {"embed", "pca"}) {
    vitrail::tasks::Task task = *std::ranges::find(vitrail::tasks::tasks(), name, &vitrail::tasks::Task::name);
    task.name += "-task";
    vitrail::tasks::add_task(std::move(task));
  }
  return vitrail::app::run_program(argc, argv);
}
