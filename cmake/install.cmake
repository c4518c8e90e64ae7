# SPDX-License-Identifier: Apache-2.0
# Installs the library with its headers, the program, the bundled models, the recipes, the dataset of
# recipes/digits.json, the script that fetches others, the licences, and the packages of find_package(vitrail) and
# pkg-config.  The target `uninstall` removes what the last installation wrote.  The components are runtime, models,
# mpi, development and, in Debian's packages, shared.
include(CMakePackageConfigHelpers)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME development)

if(TARGET vitrail_shared)  # for the Debian packages alone
  install(TARGETS vitrail_shared LIBRARY COMPONENT shared NAMELINK_COMPONENT development EXCLUDE_FROM_ALL)
endif()
install(TARGETS vitrail_lib EXPORT vitrailTargets LIBRARY COMPONENT runtime NAMELINK_COMPONENT development)
if(VITRAIL_APP)
  install(TARGETS vitrail RUNTIME COMPONENT runtime)
endif()
if(VITRAIL_APP AND NOT CMAKE_CROSSCOMPILING AND NOT SKBUILD)  # a wheel has no place for them
  foreach(shell_file "bash bash-completion/completions vitrail" "zsh zsh/vendor-completions _vitrail"
                     "fish fish/vendor_completions.d vitrail.fish")
    separate_arguments(shell_file)
    list(GET shell_file 0 shell)
    list(GET shell_file 1 folder)
    list(GET shell_file 2 name)
    install(FILES ${PROJECT_BINARY_DIR}/completions/${shell} RENAME ${name}
            DESTINATION ${CMAKE_INSTALL_DATADIR}/${folder} COMPONENT runtime)
  endforeach()
  install(FILES ${PROJECT_BINARY_DIR}/completions/vitrail.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1
          COMPONENT runtime)
endif()
if(VITRAIL_APP AND TARGET vitrail_serve AND NOT SKBUILD)
  set(unit ${PROJECT_BINARY_DIR}/vitrail-serve.service)
  # Written when it is installed: the prefix is that of `cmake --install --prefix`, or of a package.
  install(CODE "
    cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_PREFIX OUTPUT_VARIABLE prefix)
    set(program \"${CMAKE_INSTALL_BINDIR}/vitrail\")
    cmake_path(ABSOLUTE_PATH program BASE_DIRECTORY \"\${prefix}\")
    string(REPLACE % %% program \"\${program}\")  # a specifier begins with %
    configure_file(${PROJECT_SOURCE_DIR}/cmake/vitrail-serve.service.in ${unit} @ONLY)" COMPONENT runtime)
  install(FILES ${unit} DESTINATION lib/systemd/system COMPONENT runtime)  # of /usr and /usr/local, systemd looks here
endif()
# As install(DIRECTORY) does, but when it runs: which headers are public depends on what they include then.
set(prefix "\${CMAKE_INSTALL_PREFIX}")
cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_INCLUDEDIR BASE_DIRECTORY "${prefix}" OUTPUT_VARIABLE include_folder)
install(CODE "set(include_folder \"${include_folder}\")")
install(SCRIPT ${PROJECT_SOURCE_DIR}/cmake/public_headers.cmake)
if(SKBUILD)  # a wheel has room for the default model alone
  set(VITRAIL_LEFT_OUT PATTERN cifar10-vit EXCLUDE PATTERN segment-tiny EXCLUDE)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/models DESTINATION ${CMAKE_INSTALL_DATADIR}/vitrail COMPONENT models
        ${VITRAIL_LEFT_OUT})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/recipes DESTINATION ${CMAKE_INSTALL_DATADIR}/vitrail COMPONENT runtime)
install(PROGRAMS ${PROJECT_SOURCE_DIR}/scripts/get-data DESTINATION ${CMAKE_INSTALL_DATADIR}/vitrail/scripts
        COMPONENT runtime)
install(FILES ${PROJECT_SOURCE_DIR}/examples/digits.zip DESTINATION ${CMAKE_INSTALL_DATADIR}/vitrail/examples
        COMPONENT runtime)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/NOTICE DESTINATION ${CMAKE_INSTALL_DOCDIR}
        COMPONENT runtime)
install(EXPORT vitrailTargets NAMESPACE vitrail:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/vitrail)

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/vitrailConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/vitrailConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/vitrail)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/vitrailConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/vitrailConfig.cmake ${PROJECT_BINARY_DIR}/vitrailConfigVersion.cmake
              ${PROJECT_SOURCE_DIR}/cmake/dependencies.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/vitrail)

# pkg-config.  A static library needs the libraries that it uses on every link line, in C those of C++ too, a shared one
# none.
if(NOT BUILD_SHARED_LIBS)
  set(VITRAIL_PC_REQUIRES "Requires: zlib libjpeg libpng libwebp libtiff-4 libutf8proc")
  set(VITRAIL_PC_LIBS " -lgif -ldl -pthread")
  if(VITRAIL_ONEDNN)
    string(APPEND VITRAIL_PC_LIBS " -ldnnl ${OpenMP_CXX_FLAGS}")
  endif()
  string(APPEND VITRAIL_PC_LIBS " -lstdc++ -lm")
endif()
file(RELATIVE_PATH VITRAIL_PREFIX_FROM_PC ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(${PROJECT_SOURCE_DIR}/cmake/vitrail.pc.in ${PROJECT_BINARY_DIR}/vitrail.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/vitrail.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

if(PROJECT_IS_TOP_LEVEL)
  include(${PROJECT_SOURCE_DIR}/cmake/package.cmake)
  add_custom_target(uninstall COMMAND ${CMAKE_COMMAND} -D MANIFEST=${PROJECT_BINARY_DIR}/install_manifest.txt
                                      -P ${PROJECT_SOURCE_DIR}/cmake/uninstall.cmake)
endif()
