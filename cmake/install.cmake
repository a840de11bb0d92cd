# What "make install" leaves: the program, its manual pages, completions and unit, the headers, both libraries, and how pkg-config and CMake
# find them. Every file is relocatable, so the prefix is chosen when installing.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/weft)

if(TARGET weft)
  install(TARGETS weft)
endif()
if(TARGET man)
  install(DIRECTORY ${CMAKE_BINARY_DIR}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR})
  install(FILES ${CMAKE_BINARY_DIR}/completion/bash/weft DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${CMAKE_BINARY_DIR}/completion/zsh/_weft DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES ${CMAKE_BINARY_DIR}/completion/fish/weft.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
# The unit names the program, whose place is known when it is installed.
install(CODE "
  set(WEFT_PROGRAM \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/weft\")
  configure_file(\"${PROJECT_SOURCE_DIR}/packaging/weft@.service.in\" \"${CMAKE_BINARY_DIR}/weft@.service\" @ONLY)
  file(INSTALL \"${CMAKE_BINARY_DIR}/weft@.service\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/lib/systemd/user\")")
install(FILES packaging/config.schema.json packaging/grafana-weft.json DESTINATION ${CMAKE_INSTALL_DATADIR}/weft)
install(DIRECTORY include/weft TYPE INCLUDE FILES_MATCHING PATTERN "*.h")

# The static library names its dependencies, so it has an export of its own that is only read where they are found.
set_target_properties(libweft PROPERTIES EXPORT_NAME static)
install(TARGETS libweft EXPORT weftStatic)
install(EXPORT weftStatic NAMESPACE weft:: FILE weftStatic.cmake DESTINATION ${package_dir})
if(TARGET libweft_shared)
  set_target_properties(libweft_shared PROPERTIES EXPORT_NAME weft)
  install(TARGETS libweft_shared EXPORT weftShared)
  install(EXPORT weftShared NAMESPACE weft:: FILE weftShared.cmake DESTINATION ${package_dir})
endif()

configure_package_config_file(cmake/weftConfig.cmake.in weftConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(weftConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/weftConfig.cmake ${PROJECT_BINARY_DIR}/weftConfigVersion.cmake DESTINATION ${package_dir})

file(RELATIVE_PATH up_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" up_to_prefix ${up_to_prefix})
configure_file(cmake/weft.pc.in weft.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/weft.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
