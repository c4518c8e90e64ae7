// SPDX-License-Identifier: Apache-2.0
#include "vitrail/dist/communicator.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/base/error.h"
#include "vitrail/dist/mpi_communicator_internal.h"

namespace vitrail::dist {
namespace {

// Sets environment variables for its lifetime.
class ScopedEnvironment {
 public:
  ScopedEnvironment(std::initializer_list<std::pair<const char*, const char*>> values) {
    for (const auto& [name, value] : values) {
      ::setenv(name, value, 1);
      names_.push_back(name);
    }
  }
  ~ScopedEnvironment() {
    for (const char* name : names_) ::unsetenv(name);
  }

 private:
  std::vector<const char*> names_;
};

TEST(Launch, IsOneProcessWithoutMpirun) {
  EXPECT_FALSE(launch_from_environment().distributed());
  EXPECT_EQ(launch_from_environment().rank, 0);
}

TEST(Launch, ReadsTheVariablesOfOpenMpiAndMpich) {
  {
    const ScopedEnvironment variables{{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}};
    EXPECT_EQ(launch_from_environment().rank, 2);
    EXPECT_EQ(launch_from_environment().size, 4);
    EXPECT_EQ(launch_from_environment().local_size, 1);
    const ScopedEnvironment local{{"OMPI_COMM_WORLD_LOCAL_SIZE", "3"}};
    EXPECT_EQ(launch_from_environment().local_size, 3);
  }
  const ScopedEnvironment variables{{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}};
  EXPECT_EQ(launch_from_environment().rank, 1);
  EXPECT_TRUE(launch_from_environment().distributed());
}

TEST(Launch, InvalidVariablesAreErrors) {
  {
    const ScopedEnvironment variables{{"OMPI_COMM_WORLD_RANK", "4"}, {"OMPI_COMM_WORLD_SIZE", "4"}};
    EXPECT_THROW(launch_from_environment(), Error);
  }
  const ScopedEnvironment variables{{"OMPI_COMM_WORLD_RANK", "x"}, {"OMPI_COMM_WORLD_SIZE", "4"}};
  EXPECT_THROW(launch_from_environment(), Error);
}

TEST(SingleProcess, LeavesDataUnchanged) {
  const auto alone = single_process();
  float value = 3;
  alone->all_reduce_sum(&value, 1);
  alone->broadcast(&value, sizeof value, 0);
  alone->barrier();
  alone->finish();
  EXPECT_EQ(value, 3);
  EXPECT_EQ(alone->size(), 1);
  EXPECT_THROW(alone->broadcast(&value, sizeof value, 1), Error);
}

TEST(MpiModule, MissingModuleIsAnErrorThatNamesTheBuildOption) {
  const ScopedEnvironment variables{{"VITRAIL_MODULES", "/nowhere"}};
  try {
    join_mpi({.rank = 0, .size = 2});
    FAIL() << "a module was found";
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("vitrail_mpi.so in /nowhere"), std::string::npos) << message;
    EXPECT_NE(message.find("VITRAIL_MPI"), std::string::npos) << message;
  }
}

TEST(Launch, NumbersOutOfRangeAreErrors) {
  for (const auto& [rank, size] :
       {std::pair{"-1", "4"}, {"0", "0"}, {"0", "-2"}, {"1 ", "4"}, {"1", "4x"}, {"99999999999", "4"}, {"5", "4"}}) {
    const ScopedEnvironment variables{{"PMI_RANK", rank}, {"PMI_SIZE", size}};
    EXPECT_THROW(launch_from_environment(), Error) << rank << " of " << size;
  }
  const ScopedEnvironment last{{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}, {"MPI_LOCALNRANKS", "0"}};
  EXPECT_EQ(launch_from_environment().rank, 3);
  EXPECT_EQ(launch_from_environment().local_size, 1) << "at least one";
}

TEST(Launch, OfHalfOfTheVariablesIsOneProcess) {
  {
    const ScopedEnvironment variables{{"OMPI_COMM_WORLD_RANK", "2"}};
    EXPECT_FALSE(launch_from_environment().distributed());
  }
  const ScopedEnvironment variables{{"PMI_SIZE", "2"}};
  EXPECT_FALSE(launch_from_environment().distributed());
  EXPECT_EQ(launch_from_environment().size, 1);
}

TEST(Launch, ErrorsNameTheVariable) {
  const auto message = [](std::initializer_list<std::pair<const char*, const char*>> values) {
    const ScopedEnvironment variables(values);
    return vitrail::testing::error_of([] { launch_from_environment(); });
  };
  EXPECT_ERROR(message({{"OMPI_COMM_WORLD_RANK", "x1"}, {"OMPI_COMM_WORLD_SIZE", "4"}}), "OMPI_COMM_WORLD_RANK",
               "'x1'");
  EXPECT_ERROR(message({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "4 "}}), "OMPI_COMM_WORLD_SIZE",
               "'4 '");
  EXPECT_ERROR(
      message({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "two"}}),
      "OMPI_COMM_WORLD_LOCAL_SIZE", "'two'");
  EXPECT_ERROR(message({{"PMI_RANK", "4"}, {"PMI_SIZE", "3"}}), "PMI_RANK", "4");
  EXPECT_ERROR(message({{"PMI_RANK", "0"}, {"PMI_SIZE", "0"}}), "PMI_RANK", "0");
}

TEST(Launch, PrefersTheVariablesOfOpenMpi) {
  const ScopedEnvironment variables{{"OMPI_COMM_WORLD_RANK", "2"},
                                    {"OMPI_COMM_WORLD_SIZE", "5"},
                                    {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                                    {"PMI_RANK", "1"},
                                    {"PMI_SIZE", "3"},
                                    {"MPI_LOCALNRANKS", "2"}};
  const Launch launch = launch_from_environment();
  EXPECT_EQ(launch.rank, 2);
  EXPECT_EQ(launch.size, 5);
  EXPECT_EQ(launch.local_size, 4);
}

TEST(Launch, OfMpichHasItsProcessesOnThisMachine) {
  const ScopedEnvironment variables{{"PMI_RANK", "1"}, {"PMI_SIZE", "6"}, {"MPI_LOCALNRANKS", "3"}};
  const Launch launch = launch_from_environment();
  EXPECT_EQ(launch.rank, 1);
  EXPECT_EQ(launch.size, 6);
  EXPECT_EQ(launch.local_size, 3);
  EXPECT_TRUE(launch.distributed());
  EXPECT_FALSE((Launch{.rank = 0, .size = 1, .local_size = 1}).distributed());
  const Launch defaults;
  EXPECT_EQ(defaults.rank, 0);
  EXPECT_EQ(defaults.size, 1);
  EXPECT_EQ(defaults.local_size, 1);
}

TEST(SingleProcess, IsThatWithoutMpirun) {
  const auto alone = connect();
  EXPECT_EQ(alone, connect()) << "one for the whole program";
  EXPECT_EQ(alone->rank(), 0);
  EXPECT_EQ(alone->size(), 1);
  double value = 2.5;
  alone->all_reduce_sum(&value, 1);
  EXPECT_EQ(value, 2.5);
  EXPECT_ERROR(vitrail::testing::error_of([&] { single_process()->broadcast(&value, sizeof value, -1); }), "broadcast",
               "-1");
}

}  // namespace
}  // namespace vitrail::dist
