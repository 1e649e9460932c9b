"""The subcommands of `pdm run sim`, one a file: HELP, add_arguments(parser), run(args). No heavy imports."""
