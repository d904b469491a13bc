SELECT @merchant_id AS merchant_id, @mode AS mode, @subject AS subject, @reason AS reason, @fact_id AS fact_id, @provider AS provider,
    @detail AS detail, @now AS at
