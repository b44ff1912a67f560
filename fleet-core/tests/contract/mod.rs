mod path_probe;
