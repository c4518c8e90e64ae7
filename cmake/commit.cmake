# SPDX-License-Identifier: Apache-2.0
# Writes the commit of the sources to OUTPUT, which changes only if the commit does.
#   cmake -D SOURCE=FOLDER -D TEMPLATE=FILE -D OUTPUT=FILE -P commit.cmake
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 "--exclude=*"
                OUTPUT_VARIABLE COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(COMMIT unknown)
endif()
configure_file(${TEMPLATE} ${OUTPUT} @ONLY)
